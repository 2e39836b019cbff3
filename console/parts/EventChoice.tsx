/** The event types that a webhook takes, as boxes to tick. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import { useResource } from "../Resource.ts"
import { Failure } from "./Failure.tsx"
import { CheckField } from "./Form.tsx"

export const EventChoice = ({ chosen, onChange }: {
  readonly chosen: ReadonlyArray<string>
  readonly onChange: (chosen: ReadonlyArray<string>) => void
}): JSX.Element => {
  const types = useResource("event types", (signal) => ask("listEventTypes", {}, { signal }))
  return (
    <fieldset>
      <legend>Events</legend>
      <Failure of={types.failure} retry={types.reload} />
      {types.value.value?.items.map(({ event_type, meaning }) => (
        <CheckField
          key={event_type}
          label={
            <>
              <code>{event_type}</code> <span class="note">{meaning}</span>
            </>
          }
          checked={chosen.includes(event_type)}
          onChange={(checked) =>
            onChange(checked ? [...chosen, event_type] : chosen.filter((one) => one !== event_type))}
        />
      ))}
    </fieldset>
  )
}
