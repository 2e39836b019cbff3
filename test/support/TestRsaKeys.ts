/**
 * RSA keys that all files of a run share, since generating one takes 0.35 s of a core on Deno: three for each of a
 * hundred databases took a fifth of the suite's processor time. The keys that one test file gets all differ.
 */
import { Effect, Layer } from "effect"
import { createPrivateKey, createPublicKey, generateKeyPairSync } from "node:crypto"
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { expect, inject } from "vitest"
import { type RsaKeyPair, RsaKeyPairs } from "../../services/platform/security/RsaKeyPairs.ts"

const known = new Map<number, RsaKeyPair>()

const generated = (): RsaKeyPair => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
  return { privateKey, publicKey }
}

/** The run's key with this number. Two workers may both make it at first: each then uses its own. */
const keyNumbered = (n: number): RsaKeyPair => {
  const path = join(inject("runFolder"), "keys", String(n))
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

const taken = { file: "", keys: 0 }

const next = () => {
  const file = expect.getState().testPath ?? ""
  if (file !== taken.file) Object.assign(taken, { file, keys: 0 })
  const n = taken.keys++
  const pair = known.get(n) ?? keyNumbered(n)
  known.set(n, pair)
  return pair
}

export const testRsaKeys = Layer.succeed(RsaKeyPairs, Effect.sync(next))
