/**
 * The canonical JSON (RFC 8785) of a project's state, written row by row and cut into pieces, so that neither side ever
 * holds the whole of a large state. All pieces in their order are the text; its SHA-256 is the state's digest.
 *
 * A piece ends just before an item of a list, where a hash of the item's key says so once the piece is large enough:
 * the same state is cut into the same pieces, and after a small change most pieces stay the same.
 */
import { createHash } from "node:crypto"
import { canonical } from "../platform/security/CanonicalJson.ts"

export interface Row {
  readonly key: string
  readonly value: unknown
}

export interface Piece {
  readonly text: string
  readonly digest: string
  readonly bytes: number
}

/**
 * The members of the state: the name, the first part of their rows' keys, and whether the member is a list or one
 * value. Keys and names have the same order.
 */
const members = [
  { name: "access", head: "access", list: true },
  { name: "identities", head: "identity", list: true },
  { name: "keys", head: "keys", list: false },
  { name: "owners", head: "owner", list: true },
  { name: "people", head: "person", list: true },
  { name: "project", head: "project", list: false },
  { name: "reviews", head: "review", list: true },
  { name: "service_grants", head: "service_grant", list: true },
  { name: "sessions", head: "session", list: true },
  { name: "sessions_floor", head: "sessions_floor", list: true },
] as const

const nth = new Map<string, number>(members.map(({ head }, i) => [head, i]))

/** In UTF-16 code units, which are bytes of most texts. */
export interface Sizes {
  /** A piece has at least so many units, unless it is the last. */
  readonly least: number
  /** A piece that has so many units is cut at the next item. */
  readonly most: number
}

const sizes: Sizes = { least: 256 * 1024, most: 768 * 1024 }
/** One item in so many may be the first of a piece. */
const oneIn = 1_024

/** FNV-1a. */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/** Takes a state's rows in the order of their keys. Keys that this version does not know are left out. */
export const piecesOf = ({ least, most }: Sizes = sizes) => {
  const whole = createHash("sha256")
  let piece: Array<string> = []
  let size = 0
  let cut: Array<Piece> = []
  let at = -1
  let first = true

  const write = (text: string) => {
    piece.push(text)
    size += text.length
  }

  const end = () => {
    const text = piece.join("")
    const bytes = Buffer.from(text)
    whole.update(bytes)
    const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`
    cut.push({ text, digest, bytes: bytes.length })
    piece = []
    size = 0
  }

  const take = () => {
    const taken = cut
    cut = []
    return taken
  }

  /** Opens members up to the one with this number; members in between are empty. */
  const open = (to: number) => {
    while (at < to) {
      if (at >= 0) write(`${members[at]!.list ? "]" : first ? "null" : ""},`)
      else write("{")
      at += 1
      first = true
      write(`"${members[at]!.name}":${members[at]!.list ? "[" : ""}`)
    }
  }

  return {
    /** Adds a row; returns the pieces that are complete now. */
    add: ({ key, value }: Row): ReadonlyArray<Piece> => {
      const member = nth.get(key.split("/", 1)[0]!)
      if (member === undefined) return []
      if (member < at) throw new RangeError("rows are not in the order of their keys")
      open(member)
      if (!first) write(",")
      first = false
      if (members[member]!.list && (size >= most || size >= least && hashOf(key) % oneIn === 0)) end()
      write(canonical(value))
      return take()
    },
    /** Ends the text; returns the last pieces and the digest of the whole text. */
    end: (): { readonly pieces: ReadonlyArray<Piece>; readonly digest: string } => {
      open(members.length - 1)
      write(`${members[at]!.list ? "]" : first ? "null" : ""}}`)
      end()
      return { pieces: take(), digest: `sha256:${whole.digest("hex")}` }
    },
  }
}
