/** Proofs of decisions, as the kit verifies them, with the record and the salt that make the entry. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { generateKeyPairSync, randomUUID } from "node:crypto"
import { digestOf } from "../../../sdk/Canonical.ts"
import { verifyInclusion } from "../../../sdk/TransparencyLog.ts"
import { DecisionProofs } from "../../../services/transparency/DecisionProofs.ts"
import { verifierKey } from "../../../services/transparency/LogCheckpoint.ts"
import { bySigstore } from "../../support/SigstoreVerifier.ts"
import { decide, decisionLog, entries, head, policy, settled } from "./DecisionLogFixture.ts"

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

    it.effect("Sigstore's verifier finds every proved decision in the log, and refuses what was changed", () =>
      Effect.gen(function* () {
        const { of } = yield* DecisionProofs
        const ids = yield* decide(3)
        yield* settled
        const { logKeys } = yield* policy
        const proofs = (yield* Effect.forEach([...(yield* entries).map(({ record_id }) => record_id), ...ids], of))
          .map((one) => ({ entry: one!.entry, proof: one!.proved!.proof, index: one!.proved!.index }))
        const { size } = yield* head
        assert.isAtLeast(proofs.length, 3)
        for (const { entry, index, proof } of proofs) {
          assert.deepStrictEqual(bySigstore(proof, entry, logKeys), { index, size })
        }
        const { entry, index, proof } = proofs.at(-1)!
        const stranger = verifierKey(logKeys[0]!.split("+")[0]!, generateKeyPairSync("ed25519").privateKey)
        const changed: Readonly<Record<string, () => unknown>> = {
          "another entry": () => bySigstore(proof, proofs[0]!.entry, logKeys),
          "another index": () => bySigstore(proof.replace(`index ${index}\n`, `index ${index - 1}\n`), entry, logKeys),
          "another size": () => bySigstore(proof.replace(`\n${size}\n`, `\n${size + 1}\n`), entry, logKeys),
          "another key": () => bySigstore(proof, entry, [stranger]),
          "a hash less": () => bySigstore(proof.replace(/(index \d+\n)[^\n]+\n/, "$1"), entry, logKeys),
        }
        for (const [what, refused] of Object.entries(changed)) assert.throws(refused, /checkpoint|hash/, what)
      }))
  },
)
