/** A whole log by its files: what the definition of the tree makes is accepted, and every other log is refused. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { generateKeyPairSync } from "node:crypto"
import { Refusal } from "../../sdk/Refusal.ts"
import type { LogPolicy } from "../../sdk/TransparencyLog.ts"
import { verifyLog } from "../../sdk/WholeLog.ts"
import { witness } from "../../sdk/Witness.ts"
import { signedCheckpoint, verifierKey } from "../../services/transparency/LogCheckpoint.ts"
import { rootOf } from "../services/transparency/NaiveTree.ts"

const origin = "log.example.org/log"
const key = generateKeyPairSync("ed25519").privateKey
const policy: LogPolicy = { origin, logKeys: [verifierKey(origin, key)] }

const headOf = (entries: ReadonlyArray<Uint8Array>) => ({ size: entries.length, root: rootOf(entries) })

/** The files of a log, which may have other entries than its checkpoint says. */
const filesOf = (entries: ReadonlyArray<Uint8Array>, head = headOf(entries)) => (path: string) => {
  if (path === "cosigned-checkpoint") return Promise.reject(new Error("no witness has cosigned"))
  if (path === "checkpoint") return Promise.resolve(Buffer.from(signedCheckpoint({ origin, ...head }, key)))
  const [, index, width] = /^tile\/entries\/(\d{3})(?:\.p\/(\d+))?$/.exec(path)!
  const from = Number(index) * 256
  const some = entries.slice(from, from + Number(width ?? 256))
  return Promise.resolve(Buffer.concat(some.flatMap((entry) => [Buffer.of(0, entry.length), entry])))
}

const stepOf = (verified: Promise<unknown>) =>
  verified.then(() => "verified", (error) => error instanceof Refusal ? error.step : String(error))

const entry = (n: number) => Buffer.from(`entry ${n}`)
const log = fc.integer({ min: 0, max: 700 }).map((size) => Array.from({ length: size }, (_, n) => entry(n)))
const runs = { numRuns: 25, seed: 18 }

describe("verifyLog", () => {
  it("accepts a log, also as the continuation of each of its beginnings", () =>
    fc.assert(
      fc.asyncProperty(log, fc.nat(), async (entries, at) => {
        const before = entries.slice(0, at % (entries.length + 1))
        const head = await verifyLog(filesOf(entries), policy, headOf(before))
        assert.deepStrictEqual([head.size, Buffer.from(head.root)], [entries.length, Buffer.from(rootOf(entries))])
      }),
      runs,
    ))

  it("reads the full bundle where the partial one was deleted, and says why where neither is there", async () => {
    const entries = Array.from({ length: 512 }, (_, n) => entry(n))
    const [files, checkpoint] = [filesOf(entries), filesOf(entries.slice(0, 300))]
    const without = (gone: RegExp) => (path: string) =>
      gone.test(path) ? Promise.reject(new Error(`no ${path}`)) : path === "checkpoint" ? checkpoint(path) : files(path)
    assert.strictEqual((await verifyLog(without(/\.p\//), policy)).size, 300)
    assert.strictEqual(await stepOf(verifyLog(without(/001/), policy)), "Error: no tile/entries/001.p/44")
    const others = filesOf(entries.with(270, entry(-1)))
    const swapped = (path: string) => path === "tile/entries/001" ? others(path) : without(/\.p\//)(path)
    assert.strictEqual(await stepOf(verifyLog(swapped, policy)), "inclusion")
  })

  it("reads the newest cosigned checkpoint where the newest one lacks cosignatures, but none older than known", async () => {
    const entries = Array.from({ length: 12 }, (_, n) => entry(n))
    const { addCheckpoint, key: witnessKey } = witness({
      name: "witness.example.net",
      privateKey: generateKeyPairSync("ed25519").privateKey,
      logs: [policy],
      memory: { last: () => Promise.resolve(null), replace: () => Promise.resolve(true) },
    })
    const note = signedCheckpoint({ origin, ...headOf(entries.slice(0, 10)) }, key)
    const { body } = await addCheckpoint(`old 0\n\n${note}`, 1)
    const read = (path: string) =>
      path === "cosigned-checkpoint" ? Promise.resolve(Buffer.from(note + body)) : filesOf(entries)(path)
    const demanding = { ...policy, witnessKeys: [witnessKey], quorum: 1 }
    assert.strictEqual((await verifyLog(read, demanding, headOf(entries.slice(0, 10)))).size, 10)
    assert.strictEqual(await stepOf(verifyLog(read, demanding, headOf(entries.slice(0, 11)))), "witnesses")
    assert.strictEqual(await stepOf(verifyLog(filesOf(entries), demanding)), "witnesses")
    assert.strictEqual((await verifyLog(read, policy)).size, 12)
  })

  it("refuses an entry that is another, missing, added or moved", () =>
    fc.assert(
      fc.asyncProperty(log.filter(({ length }) => length > 1), fc.nat(), fc.nat(3), async (entries, n, how) => {
        const at = n % (entries.length - 1)
        const others = [
          entries.with(at, entry(-1)),
          entries.toSpliced(at, 1),
          entries.toSpliced(at, 0, entry(-1)),
          entries.with(at, entries[at + 1]!).with(at + 1, entries[at]!),
        ][how]!
        assert.strictEqual(await stepOf(verifyLog(filesOf(others, headOf(entries)), policy)), "inclusion")
      }),
      runs,
    ))

  it("refuses a log that forked before what was remembered, or that is shorter", () =>
    fc.assert(
      fc.asyncProperty(log.filter(({ length }) => length > 1), fc.nat(), async (entries, n) => {
        const at = n % entries.length
        const forked = entries.with(at, entry(-1))
        for (const size of [at + 1, entries.length]) {
          const before = headOf(entries.slice(0, size))
          assert.strictEqual(await stepOf(verifyLog(filesOf(forked), policy, before)), "consistency")
        }
        assert.strictEqual(await stepOf(verifyLog(filesOf(forked), policy, headOf(entries.slice(0, at)))), "verified")
        const shorter = verifyLog(filesOf(entries.slice(0, at)), policy, headOf(entries))
        assert.strictEqual(await stepOf(shorter), "consistency")
      }),
      runs,
    ))
})
