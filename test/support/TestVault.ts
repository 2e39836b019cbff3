/** A vault with one key of the tests. */
import { Layer, Redacted } from "effect"
import { Vault } from "../../services/platform/security/Vault.ts"

const key = Buffer.alloc(32, 7).toString("base64")

/** The ring, as BAILIWICK_KEYS has it. */
export const testKeys = JSON.stringify({ active: "k1", keys: { k1: key } })

/** Stands on `Database`. */
export const vault = Layer.suspend(() => Vault.layer({ file: "/nowhere", keys: Redacted.make(testKeys) }))
