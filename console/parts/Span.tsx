/** A span of time that ends now, as a filter in the address. */
import type { JSX } from "preact"
import { here, setQuery } from "../Location.ts"
import { SelectField } from "./Form.tsx"

const hours: Readonly<Record<string, number>> = { "1h": 1, "24h": 24, "7d": 168, "30d": 720 }

/** The hours of the span that the address names; undefined where it names none. */
export const spanHours = (): number | undefined => hours[here.value.searchParams.get("within") ?? ""]

/** The beginning of the span that the address names; undefined where it names none. */
export const spanStart = (): string | undefined => {
  const length = spanHours()
  return length === undefined ? undefined : new Date(Date.now() - length * 3_600_000).toISOString()
}

export const Span = (): JSX.Element => (
  <SelectField
    label="Within"
    value={here.value.searchParams.get("within") ?? ""}
    onChange={(within) => setQuery({ within, after: undefined })}
    options={[["", "All time"], ["1h", "The last hour"], ["24h", "24 hours"], ["7d", "7 days"], ["30d", "30 days"]]}
  />
)
