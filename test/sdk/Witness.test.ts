/** A witness by C2SP tlog-witness cosigns only checkpoints that continue the last one, and the kit counts its line. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { generateKeyPairSync } from "node:crypto"
import type { Tree } from "../../sdk/MerkleProof.ts"
import { verifyCheckpoint } from "../../sdk/TransparencyLog.ts"
import { witness, type WitnessMemory } from "../../sdk/Witness.ts"
import { signedCheckpoint, verifierKey } from "../../services/transparency/LogCheckpoint.ts"
import { proofOf, rootOf } from "../services/transparency/NaiveTree.ts"
import { runs } from "../support/Runs.ts"

const origin = "log.example.org/log"
const key = generateKeyPairSync("ed25519").privateKey
const logKeys = [verifierKey(origin, key)]

const inMemory = (): WitnessMemory & { readonly heads: Map<string, Tree> } => {
  const heads = new Map<string, Tree>()
  return {
    heads,
    last: (of) => Promise.resolve(heads.get(of) ?? null),
    replace: (of, before, next) => {
      const free = (heads.get(of) ?? null) === before
      if (free) heads.set(of, next)
      return Promise.resolve(free)
    },
  }
}

const made = (memory = inMemory()) => ({
  memory,
  ...witness({
    name: "witness.example.net",
    privateKey: generateKeyPairSync("ed25519").privateKey,
    logs: [{ origin, logKeys }],
    memory,
  }),
})

type Entries = ReadonlyArray<Uint8Array>

const entriesOf = (size: number, salt = ""): Entries =>
  Array.from({ length: size }, (_, n) => Buffer.from(`${salt}${n}`))

const checkpointOf = (entries: Entries, by = key, named = origin) =>
  signedCheckpoint({ origin: named, size: entries.length, root: rootOf(entries) }, by)

const asking = (old: number, entries: Entries, checkpoint = checkpointOf(entries)) =>
  [`old ${old}`, ...proofOf(old, entries).map((hash) => Buffer.from(hash).toString("base64")), "", checkpoint].join(
    "\n",
  )

describe("witness", () => {
  it("cosigns every continuation, and the kit counts its cosignature", () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.nat(80), { minLength: 1, maxLength: 8 }), async (steps) => {
        const { addCheckpoint, key: own, memory } = made()
        let size = 0
        for (const step of steps) {
          const entries = entriesOf(size + step)
          const { body, status } = await addCheckpoint(asking(size, entries), 1_700_000_000)
          assert.strictEqual(status, 200)
          const policy = { origin, logKeys, witnessKeys: [own], quorum: 1 }
          const head = verifyCheckpoint(checkpointOf(entries) + body, policy)
          assert.deepStrictEqual(head.witnesses, [{ name: "witness.example.net", at: 1_700_000_000 }])
          size += step
          assert.strictEqual(memory.heads.get(origin)!.size, size)
        }
      }),
      { numRuns: runs(30), seed: 18 },
    ))

  it("cosigns no fork, whatever old size and proof it is given", () =>
    fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 60 }), fc.nat(60), fc.nat(60), async (size, more, old) => {
        const { addCheckpoint, memory } = made()
        await addCheckpoint(asking(0, entriesOf(size)), 1)
        const before = memory.heads.get(origin)
        const fork = entriesOf(size + more, "fork ")
        for (const from of [size, Math.min(old, fork.length)]) {
          const { status } = await addCheckpoint(asking(from, fork), 2)
          assert.include([409, 422], status)
        }
        assert.strictEqual(memory.heads.get(origin), before)
      }),
      { numRuns: runs(60), seed: 18 },
    ))

  it("tells its size where it is asked from another one", async () => {
    const { addCheckpoint } = made()
    await addCheckpoint(asking(0, entriesOf(5)), 1)
    const late = await addCheckpoint(asking(3, entriesOf(7)), 1)
    assert.deepStrictEqual(late, { status: 409, contentType: "text/x.tlog.size", body: "5\n" })
  })

  it("of two requests at once from one size, one is cosigned", async () => {
    const { addCheckpoint } = made()
    const answers = await Promise.all([
      addCheckpoint(asking(0, entriesOf(3)), 1),
      addCheckpoint(asking(0, entriesOf(4, "fork ")), 1),
    ])
    assert.deepStrictEqual(answers.map(({ status }) => status).sort(), [200, 409])
  })

  it("refuses other logs, other keys, and what is malformed", async () => {
    const { addCheckpoint } = made()
    const status = async (body: string) => (await addCheckpoint(body, 1)).status
    const entries = entriesOf(4)
    const stranger = generateKeyPairSync("ed25519").privateKey
    assert.strictEqual(await status(asking(0, entries, checkpointOf(entries, key, "other.example.org"))), 404)
    assert.strictEqual(await status(asking(0, entries, checkpointOf(entries, stranger))), 403)
    assert.strictEqual(await status(asking(0, entries).replace("old 0", "old 00")), 400)
    assert.strictEqual(await status(asking(0, entries).replace("old 0\n", "old 0\nAAAA\n")), 400)
    assert.strictEqual(await status("old 9\n\n" + checkpointOf(entries)), 400)
    assert.strictEqual(await status("old 0\n" + checkpointOf(entries).replace("\n\n", "\n")), 400)
    assert.strictEqual(await status(""), 400)
  })
})
