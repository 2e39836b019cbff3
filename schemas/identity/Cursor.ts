/** A place in a project's history, opaque to whoever keeps it: `epoch.position` in base64url. */
import { Option } from "effect"

export interface Place {
  readonly epoch: number
  readonly position: number
}

export const encodeCursor = ({ epoch, position }: Place): string => btoa(`${epoch}.${position}`).replace(/=+$/, "")

/** None for what never was a cursor of ours. */
export const decodeCursor = (text: string): Option.Option<Place> => {
  // A length of one over is nobody's base64: `atob` would throw.
  if (!/^[A-Za-z0-9+/]{1,44}$/.test(text) || text.length % 4 === 1) return Option.none()
  const match = /^([1-9]\d{0,8})\.(0|[1-9]\d{0,15})$/.exec(atob(text))
  return match === null ? Option.none() : Option.some({ epoch: Number(match[1]), position: Number(match[2]) })
}
