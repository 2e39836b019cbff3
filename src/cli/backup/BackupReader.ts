/** Reads the file of a backup: checks it from end to end before any byte is used, then reads it part by part. */
import { Option, Schema } from "effect"
import { createHash } from "node:crypto"
import { type FileHandle, open } from "node:fs/promises"
import { CliFault } from "../CliFault.ts"
import { chunkBytes, lineBytes, magic, type Manifest, manifestBytes, manifestText } from "./Format.ts"

export interface Backup {
  readonly manifest: Manifest
  /** The compressed rows of a table; fails at their end where they changed since the check. */
  readonly rows: (table: string) => AsyncGenerator<Uint8Array>
  readonly close: () => Promise<void>
}

const decode = Schema.decodeUnknownOption(manifestText)
const damaged = (why: string) => new CliFault({ message: `the file is damaged or no backup: ${why}` })

const bytesAt = async (file: FileHandle, at: number, length: number): Promise<Uint8Array> => {
  const bytes = new Uint8Array(length)
  let got = 0
  while (got < length) {
    const { bytesRead } = await file.read(bytes, got, length - got, at + got)
    if (bytesRead === 0) throw damaged("it ends early")
    got += bytesRead
  }
  return bytes
}

interface Chunk {
  readonly name: string
  readonly start: number
  readonly length: number
}

const chunkAt = async (file: FileHandle, at: number): Promise<Chunk> => {
  const bytes = new Uint8Array(lineBytes)
  const { bytesRead } = await file.read(bytes, 0, lineBytes, at)
  const end = bytes.subarray(0, bytesRead).indexOf(0x0a)
  if (end < 0) throw damaged("it ends early")
  const match = /^([a-z_][a-z0-9_]{0,62}) ([1-9]\d{0,8})$/.exec(new TextDecoder().decode(bytes.subarray(0, end)))
  if (match === null) throw damaged(`nothing begins at byte ${at}`)
  const chunk = { name: match[1]!, start: at + end + 1, length: Number(match[2]) }
  if (chunk.length > (chunk.name === "manifest" ? manifestBytes : chunkBytes)) throw damaged(`too much at byte ${at}`)
  return chunk
}

const manifestAt = async (file: FileHandle, { length, start }: Chunk, size: number): Promise<Manifest> => {
  const text = new TextDecoder().decode(await bytesAt(file, start, length))
  const sha256 = createHash("sha256").update(text).digest("hex")
  const tail = new TextDecoder().decode(await bytesAt(file, start + length, 66))
  const manifest = Option.getOrNull(decode(text))
  if (tail !== `\n${sha256}\n` || manifest === null) throw damaged("its manifest is not what was written")
  if (size !== start + length + 66) throw damaged("something follows its end")
  return manifest
}

/** Opens a file and checks all of it. Rejects with CliFault. */
export const openBackup = async (path: string, tell: (text: string) => void): Promise<Backup> => {
  const file = await open(path, "r")
  try {
    const { size } = await file.stat()
    const head = new TextEncoder().encode(magic)
    if (size < head.length || new TextDecoder().decode(await bytesAt(file, 0, head.length)) !== magic) {
      throw damaged("it does not begin as one")
    }
    const first = new Map<string, number>()
    const seen = new Map<string, { readonly bytes: number; readonly sha256: string }>()
    let at = head.length
    let chunk = await chunkAt(file, at)
    while (chunk.name !== "manifest") {
      const { name } = chunk
      if (first.has(name)) throw damaged(`${name} begins twice`)
      first.set(name, at)
      const hash = createHash("sha256")
      let bytes = 0
      while (chunk.name === name) {
        hash.update(await bytesAt(file, chunk.start, chunk.length))
        bytes += chunk.length
        at = chunk.start + chunk.length
        tell(`checked ${Math.floor(at / size * 100)} %`)
        chunk = await chunkAt(file, at)
      }
      seen.set(name, { bytes, sha256: hash.digest("hex") })
    }
    const manifest = await manifestAt(file, chunk, size)
    for (const { bytes, sha256, table } of manifest.parts) {
      const found = seen.get(table)
      if (found?.bytes !== bytes || found.sha256 !== sha256) throw damaged(`${table} is not what was written`)
    }
    if (manifest.parts.length !== seen.size) throw damaged("it holds what its manifest does not name")
    return {
      manifest,
      rows: async function* (table) {
        const hash = createHash("sha256")
        let at = first.get(table)!
        for (;;) {
          const chunk = await chunkAt(file, at)
          if (chunk.name !== table) break
          const bytes = await bytesAt(file, chunk.start, chunk.length)
          hash.update(bytes)
          at = chunk.start + chunk.length
          yield bytes
        }
        if (hash.digest("hex") !== seen.get(table)!.sha256) throw damaged(`${table} changed while it was read`)
      },
      close: () => file.close(),
    }
  } catch (error) {
    await file.close()
    throw error
  }
}
