/** What was on screen against what is now: the lines that differ. */
import type { JSX } from "preact"
import { Table } from "./Table.tsx"

export type Facts = Readonly<Record<string, string>>

export const Difference = ({ before, now }: { readonly before: Facts; readonly now: Facts }): JSX.Element => (
  <Table
    caption="What has changed"
    rows={Object.keys(now).filter((name) => before[name] !== now[name])}
    keyOf={(name) => name}
    empty="Nothing that is shown here has changed."
    columns={[
      { head: "What", cell: (name) => name },
      { head: "On screen", cell: (name) => before[name] ?? "" },
      { head: "Now", cell: (name) => <strong>{now[name]}</strong> },
    ]}
  />
)
