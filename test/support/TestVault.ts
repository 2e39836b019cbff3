/** A vault with one key for tests. */
import { Layer, Redacted } from "effect"
import { Vault } from "../../services/platform/security/Vault.ts"

const key = Buffer.alloc(32, 7).toString("base64")

/** The ring, as in BAILIWICK_KEYS. */
export const testKeys = JSON.stringify({ active: "k1", keys: { k1: key } })

/** Needs `Database`. */
export const vault = Layer.suspend(() => Vault.layer({ file: "/nowhere", keys: Redacted.make(testKeys) }))
