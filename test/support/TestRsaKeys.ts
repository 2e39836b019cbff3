/**
 * RSA keys that all files of a run share, since generating one takes 0.35 s of a core on Deno: three for each of a
 * hundred databases took a fifth of the suite's processor time.
 */
import { Effect, Layer } from "effect"
import { createPrivateKey, createPublicKey, generateKeyPairSync } from "node:crypto"
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { expect } from "vitest"
import { type RsaKeyPair, RsaKeyPairs } from "../../services/platform/security/RsaKeyPairs.ts"

const known = new Map<string, RsaKeyPair>()

const generated = (): RsaKeyPair => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
  return { privateKey, publicKey }
}

/** From the run's folder (GlobalSetup). Two workers may both make a key at first: each then uses its own. */
const stored = (name: string): RsaKeyPair => {
  const folder = process.env["TEST_RSA_KEYS"]
  if (folder === undefined) return generated()
  const path = join(folder, encodeURIComponent(name))
  if (existsSync(path)) {
    const privateKey = createPrivateKey(readFileSync(path, "utf8"))
    return { privateKey, publicKey: createPublicKey(privateKey) }
  }
  const pair = generated()
  const unfinished = `${path}.${process.pid}`
  writeFileSync(unfinished, pair.privateKey.export({ type: "pkcs8", format: "pem" }))
  renameSync(unfinished, path)
  return pair
}

/** The key with this name. */
export const rsaKeyNamed = (name: string): RsaKeyPair => {
  const pair = known.get(name) ?? stored(name)
  known.set(name, pair)
  return pair
}

const taken = { file: "", keys: 0 }

/** A key that the test file did not get before. */
export const nextRsaKey = (): RsaKeyPair => {
  const file = expect.getState().testPath ?? ""
  if (file !== taken.file) Object.assign(taken, { file, keys: 0 })
  return rsaKeyNamed(`number ${taken.keys++}`)
}

export const testRsaKeys = Layer.succeed(RsaKeyPairs, Effect.sync(nextRsaKey))
