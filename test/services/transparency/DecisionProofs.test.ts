/** Proofs of decisions, as the kit verifies them, with the record and the salt that make the entry. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { digestOf } from "../../../sdk/Canonical.ts"
import { verifyInclusion } from "../../../sdk/TransparencyLog.ts"
import { DecisionProofs } from "../../../services/transparency/DecisionProofs.ts"
import { decide, decisionLog, policy, settled } from "./DecisionLogFixture.ts"

layer(DecisionProofs.layer.pipe(Layer.provideMerge(decisionLog)), { excludeTestServices: true, timeout: "1 minute" })(
  "DecisionProofs",
  (it) => {
    it.effect("a decision that waits has its entry, and no proof yet; what is no decision has neither", () =>
      Effect.gen(function* () {
        const { of } = yield* DecisionProofs
        const [id] = yield* decide(1)
        assert.isNull((yield* of(id!))!.proved)
        assert.isNull(yield* of(randomUUID()))
        yield* settled
        assert.strictEqual((yield* of(id!))!.proved!.index, 0)
      }))

    it.effect("every decision is proved, by the record of the audit and the salt", () =>
      Effect.gen(function* () {
        const { of } = yield* DecisionProofs
        const ids = yield* decide(270)
        yield* settled
        const trusted = yield* policy
        for (const id of ids) {
          const { entry, proved, record, salt } = (yield* of(id))!
          assert.strictEqual(record!.id, id)
          const made = digestOf({
            record: { ...record!, details: {}, at: record!.at.toISOString() },
            salt: Buffer.from(salt).toString("base64"),
          })
          assert.strictEqual(made, `sha256:${Buffer.from(entry).toString("hex")}`)
          const { head, index } = verifyInclusion(proved!.proof, entry, trusted)
          assert.deepStrictEqual([index, head.size], [proved!.index, 271])
        }
      }))
  },
)
