/**
 * HMAC-SHA256 (RFC 2104) by the system's OpenSSL, under Deno. A hash of Deno's takes 3 µs before its first byte, and an
 * HMAC takes two of them. OpenSSL continues from the state behind a key's pads, which is made once a key.
 *
 * Guarantees: a library is not used where its first MAC differs from node:crypto's, or where it writes beyond the size of
 * a state. All keys share one state and one digest: nothing here awaits.
 */
import { createHmac } from "node:crypto"
import { call, libCrypto } from "./LibCrypto.ts"

/** Makes the MAC of a message. The next MAC, of any key, overwrites its bytes. */
export type Mac = (message: Uint8Array) => Uint8Array

interface Library {
  readonly SHA256_Init: (state: Uint8Array) => number
  readonly SHA256_Update: (state: Uint8Array, message: Uint8Array, length: number) => number
  readonly SHA256_Final: (digest: Uint8Array, state: Uint8Array) => number
}

const blockBytes = 64
/** The size of `SHA256_CTX`: eight words of state, two of length, a block, two more words. */
const stateBytes = 112

const load = () =>
  libCrypto<Library>({
    SHA256_Init: call("i32", "buffer"),
    SHA256_Update: call("i32", "buffer", "buffer", "usize"),
    SHA256_Final: call("i32", "buffer", "buffer"),
  })

const state = new Uint8Array(2 * stateBytes)
const digest = new Uint8Array(32)

/** The state after the first block, which is the key over `pad`. */
const behind = ({ SHA256_Init, SHA256_Update }: Library, key: Uint8Array, pad: number): Uint8Array => {
  const block = new Uint8Array(blockBytes).fill(pad)
  for (let index = 0; index < key.length; index++) block[index]! ^= key[index]!
  const own = new Uint8Array(2 * stateBytes)
  SHA256_Init(own)
  SHA256_Update(own, block, blockBytes)
  block.fill(0)
  return own.slice(0, stateBytes)
}

const macOf = (library: Library, key: Uint8Array): Mac => {
  const { SHA256_Final, SHA256_Update } = library
  const inner = behind(library, key, 0x36)
  const outer = behind(library, key, 0x5c)
  return (message) => {
    state.set(inner)
    SHA256_Update(state, message, message.length)
    SHA256_Final(digest, state)
    state.set(outer)
    SHA256_Update(state, digest, digest.length)
    SHA256_Final(digest, state)
    return digest
  }
}

/** Compares the library with node:crypto. */
const tried = (library: Library | null): Library | null => {
  if (library === null) return null
  const key = new TextEncoder().encode("bailiwick")
  const message = new Uint8Array(3 * blockBytes + 7).fill(0x61)
  const theirs = createHmac("sha256", key).update(message).digest()
  const same = macOf(library, key)(message).every((byte, index) => byte === theirs[index])
  return same && state.subarray(stateBytes).every((byte) => byte === 0) ? library : null
}

/** Loaded once a process; undefined until it is first used, null where it cannot be loaded. */
let library: Library | null | undefined

/** Makes the MACs of a key of at most 64 bytes; null where OpenSSL cannot be loaded. */
export const openSslMac = (key: Uint8Array): Mac | null => {
  if (library === undefined) library = tried(load())
  return library === null ? null : macOf(library, key)
}
