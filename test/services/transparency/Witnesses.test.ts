/** Witnesses are asked for cosignatures over HTTP, and neither a silent nor a lying one delays or spoils a checkpoint. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { generateKeyPairSync } from "node:crypto"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { Tree } from "../../../sdk/MerkleProof.ts"
import { verifyCheckpoint, verifyInclusion } from "../../../sdk/TransparencyLog.ts"
import { witness, type WitnessAnswer } from "../../../sdk/Witness.ts"
import { Outbound } from "../../../services/platform/Outbound.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { DecisionProofs } from "../../../services/transparency/DecisionProofs.ts"
import { LogFiles } from "../../../services/transparency/LogFiles.ts"
import { Witnesses, witnessStatus } from "../../../services/transparency/Witnesses.ts"
import { type ConfiguredWitness, witnessKey } from "../../../services/transparency/WitnessKey.ts"
import { decide, decisionLog, origin, policy, settled } from "./DecisionLogFixture.ts"

const made = (name: string, logKeys: ReadonlyArray<string>) => {
  const heads = new Map<string, Tree>()
  const own = witness({
    name,
    privateKey: generateKeyPairSync("ed25519").privateKey,
    logs: [{ origin, logKeys }],
    memory: {
      last: (of) => Promise.resolve(heads.get(of) ?? null),
      replace: (of, _, next) => Promise.resolve(heads.set(of, next) !== undefined),
    },
  })
  return { ...own, heads }
}

/** What a witness answers, of which its server gives status and body; null: it never does. */
type Answer = (body: string) => Promise<Pick<WitnessAnswer, "body" | "status"> | null>

/** Serves `/add-checkpoint` until the scope ends; gives the URL above. */
const serving = (answer: () => Answer) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<ReturnType<typeof createServer>>((resume) => {
        const server = createServer(async (request, response) => {
          const parts: Array<Buffer> = []
          for await (const part of request) parts.push(part)
          const found = request.url === "/w/add-checkpoint" ? await answer()(String(Buffer.concat(parts))) : null
          if (found !== null) response.writeHead(found.status).end(found.body)
        })
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) => Effect.sync(() => (server.closeAllConnections(), server.close())),
    ),
    (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/w/`,
  )

const configured = (key: string, url: string): ConfiguredWitness => ({ key: witnessKey(key)!, url })

const outbound = Outbound.layer({ allowedCidrs: [], certificateAuthorities: [], timeoutMillis: 5_000, ownPorts: [] })

/** Asks these witnesses once, all of them now. */
const askedAll = Effect.fnUntraced(function* (witnesses: ReadonlyArray<ConfiguredWitness>, timeoutMillis?: number) {
  const { sql } = yield* Database
  yield* sql`update log_witnesses set next_at = 'epoch'`
  return yield* Effect.flatMap(Witnesses, ({ ask }) => ask).pipe(
    Effect.provide(Layer.fresh(Witnesses.layer(witnesses, timeoutMillis)).pipe(Layer.provide(outbound))),
  )
})

const files = Effect.flatMap(LogFiles, ({ checkpoint, cosigned }) => Effect.all({ checkpoint, cosigned }))

const grown = Effect.fnUntraced(function* (count: number) {
  const ids = yield* decide(count)
  yield* settled
  return ids
})

const fixture = Layer.mergeAll(DecisionProofs.layer, LogFiles.layer).pipe(Layer.provideMerge(decisionLog))

layer(fixture, { excludeTestServices: true, timeout: "1 minute" })("Witnesses", (it) => {
  it.effect("their lines are served below the checkpoint, and in proofs; a silent witness takes nothing from it", () =>
    Effect.gen(function* () {
      const [id] = yield* grown(5)
      const trusted = yield* policy
      const [one, two] = [made("one.example.net", trusted.logKeys), made("two.example.net", trusted.logKeys)]
      const silent = made("silent.example.net", trusted.logKeys)
      const witnessKeys = [one.key, two.key, silent.key]
      const url = yield* serving(() => (body) => one.addCheckpoint(body, 1_700_000_000))
      const all = [
        configured(one.key, url),
        configured(two.key, yield* serving(() => (body) => two.addCheckpoint(body, 1_700_000_001))),
        configured(silent.key, yield* serving(() => () => Promise.resolve(null))),
      ]
      assert.isTrue(yield* askedAll(all, 200))
      const { checkpoint, cosigned } = yield* files
      const head = verifyCheckpoint(checkpoint!, { ...trusted, witnessKeys, quorum: 2 })
      assert.deepStrictEqual(head.witnesses.map(({ name }) => name).sort(), ["one.example.net", "two.example.net"])
      assert.strictEqual(cosigned, checkpoint)
      const { entry, proved } = (yield* (yield* DecisionProofs).of(id!))!
      assert.strictEqual(verifyInclusion(proved!.proof, entry, { ...trusted, witnessKeys, quorum: 2 }).head.size, 5)
      assert.deepStrictEqual(yield* witnessStatus, [
        { name: "one.example.net", cosigned: 5, fault: null },
        { name: "silent.example.net", cosigned: null, fault: "cannot be asked: timeout" },
        { name: "two.example.net", cosigned: 5, fault: null },
      ])

      // The next checkpoint is served at once, without lines; the cosigned one stays, and proofs have its lines.
      yield* grown(3)
      const later = yield* files
      assert.deepStrictEqual(verifyCheckpoint(later.checkpoint!, { ...trusted, witnessKeys }).witnesses, [])
      assert.strictEqual(later.cosigned, cosigned)
      // What the answer of the last time told is lost, as in a restored database: the witness names its size.
      const { sql } = yield* Database
      yield* sql`update log_witnesses set known_size = 2 where verifier_key = ${one.key}`
      yield* askedAll(all.slice(0, 2))
      assert.lengthOf(verifyCheckpoint((yield* files).checkpoint!, { ...trusted, witnessKeys, quorum: 2 }).witnesses, 2)
      assert.isFalse(yield* askedAll(all.slice(0, 2)), "nothing is left to ask for")
      assert.lengthOf(yield* witnessStatus, 2, "one that is no longer configured is forgotten")
    }).pipe(Effect.scoped))

  it.effect("one that refuses, lies or knows a larger log is reported, asked later, and adds no line", () =>
    Effect.gen(function* () {
      yield* grown(2)
      const { sql } = yield* Database
      const trusted = yield* policy
      const own = made("own.example.net", trusted.logKeys)
      const other = made("own.example.net", trusted.logKeys)
      const { size } = verifyCheckpoint((yield* files).checkpoint!, trusted)
      let answer: Answer = () => Promise.resolve(null)
      const all = [configured(own.key, yield* serving(() => answer))]
      const faults: ReadonlyArray<readonly [Answer, string]> = [
        [(body) => other.addCheckpoint(body, 1), "answered without a cosignature of its key"],
        // A line of the right key, of another text.
        [async (body) => {
          const cosigned = await own.addCheckpoint(body, 1_700_000_000)
          own.heads.clear()
          const [prefix, encoded] = [cosigned.body.slice(0, 18), Buffer.from(cosigned.body.slice(18, -1), "base64")]
          encoded[11]! ^= 1
          return { status: 200, body: `${prefix}${encoded.toString("base64")}\n` }
        }, "answered without a cosignature of its key"],
        [
          () => Promise.resolve({ status: 409, body: `${size + 1}\n` }),
          `has cosigned ${size + 1} entries, of a log of ${size}`,
        ],
        [() => Promise.resolve({ status: 409, body: "0\n" }), "answered 409, from size 0"],
        [() => Promise.resolve({ status: 409, body: `${size - 1}\n` }), `answered 409, from size ${size - 1}`],
        [() => Promise.resolve({ status: 422, body: "" }), `answered 422, from size ${size - 1}`],
        [() => Promise.resolve({ status: 200, body: "x".repeat(100_000) }), "cannot be asked: too_large"],
      ]
      for (const [each, fault] of faults) {
        answer = each
        assert.isTrue(yield* askedAll(all))
        assert.deepStrictEqual(yield* witnessStatus, [{ name: "own.example.net", cosigned: null, fault }])
        assert.deepStrictEqual(
          verifyCheckpoint((yield* files).checkpoint!, { ...trusted, witnessKeys: [own.key] }).witnesses,
          [],
        )
      }
      const [row] = yield* sql<{ late: number }>`
        select extract(epoch from next_at - now())::float8 as late from log_witnesses`
      assert.isAbove(row!.late, 30, "it is asked ever more rarely")
      answer = (body) => own.addCheckpoint(body, 1_700_000_000)
      yield* askedAll(all)
      assert.deepStrictEqual(yield* witnessStatus, [{ name: "own.example.net", cosigned: size, fault: null }])
    }).pipe(Effect.scoped))
})
