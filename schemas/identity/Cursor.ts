/** A position in a project's history, opaque to clients: `epoch.position` in base64url. */
import { Option, Schema } from "effect"
import { complains, valueError } from "../Validation/Fault.ts"
import { Text } from "../Validation/Scalars.ts"

export interface EventPosition {
  readonly epoch: number
  readonly position: number
}

export const encodeCursor = ({ epoch, position }: EventPosition): string =>
  btoa(`${epoch}.${position}`).replaceAll("=", "")

/** None for a text that this program never made. */
export const decodeCursor = (text: string): Option.Option<EventPosition> => {
  // No base64 has such a length: `atob` would throw.
  if (!/^[A-Za-z0-9+/]{1,44}$/.test(text) || text.length % 4 === 1) return Option.none()
  const match = /^([1-9]\d{0,8})\.(0|[1-9]\d{0,15})$/.exec(atob(text))
  return match === null ? Option.none() : Option.some({ epoch: Number(match[1]), position: Number(match[2]) })
}

/** A cursor in a request. Whether its position exists is checked later. */
export const Cursor = Text(1, 64).check(
  Schema.makeFilter<string>((text) => Option.isSome(decodeCursor(text)), {
    expected: "a cursor",
    toJsonSchema: () => [{}, true],
    ...complains(valueError("not a cursor of this service")),
  }),
)
