/**
 * A snapshot's state in parts: consecutive pieces of its canonical JSON, each but the last cut just before an item of a
 * list. Each part matches its own digest, and all of them together match the state's digest. Only one part is in memory
 * at a time.
 */
import { createHash } from "node:crypto"
import { type Json, sha256 } from "./Canonical.ts"
import { entriesOf, type StateEntry } from "./EventProjection.ts"
import { Refusal } from "./Refusal.ts"

/** A part, as the manifest names it. */
export interface Part {
  readonly digest: string
  readonly bytes: number
}

/** Maximum size of a part in bytes. */
export const maxPartBytes = 4 * 1024 * 1024

type Members = { readonly [name: string]: Json }

const refuse = (step: "digest" | "state", message: string): never => {
  throw new Refusal(step, message)
}

/** The members in a piece, whole or in part; `open`: the list in which the piece before it ended. */
const membersOf = (text: string, open: string | null, last: boolean): Members => {
  const before = open === null ? "" : `{${JSON.stringify(open)}:[`
  const after = last ? text : `${text.replace(/,$/, "")}]}`
  try {
    const value: unknown = JSON.parse(before + after)
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return value as Members
  } catch {
    // Refused below.
  }
  return refuse("state", "the part is not a piece of a state")
}

/** Reads and checks the texts of a manifest's parts, in their order. Throws Refusal. */
export const partsReader = (parts: ReadonlyArray<Part>, stateDigest: string) => {
  const whole = createHash("sha256")
  let nth = 0
  let open: string | null = null
  return {
    /** The entries in the next part. */
    next: (text: string): ReadonlyArray<StateEntry> => {
      const part = parts[nth] ?? refuse("state", "more parts than the manifest names")
      if (Buffer.byteLength(text) !== part.bytes || sha256(text) !== part.digest) {
        refuse("digest", "does not match the part")
      }
      whole.update(text)
      nth += 1
      const members = membersOf(text, open, nth === parts.length)
      open = Object.keys(members).at(-1) ?? null
      return entriesOf(members)
    },
    /** Checks, after the last part, that the parts are the whole state. */
    end: (): void => {
      if (nth !== parts.length) refuse("state", "fewer parts than the manifest names")
      if (`sha256:${whole.digest("hex")}` !== stateDigest) refuse("digest", "does not match the state")
    },
  }
}
