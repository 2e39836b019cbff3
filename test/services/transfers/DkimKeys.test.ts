import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { createPublicKey, sign, verify } from "node:crypto"
import process from "node:process"
import { Database } from "../../../services/platform/Database.ts"
import { Vault } from "../../../services/platform/Vault.ts"
import { type DkimAlgorithm, makePair } from "../../../services/transfers/DkimKeys.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import { accept, day, domain, domainRow, force, offer, person, timed, world } from "./TransferWorld.ts"

/** The key that a verifier makes of a DNS record's `p=`. */
const publicOf = (algorithm: DkimAlgorithm, p: string) => {
  const bytes = Buffer.from(p, "base64")
  const der = algorithm === "rsa" ? bytes : Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), bytes])
  return createPublicKey({ key: der, format: "der", type: "spki" })
}

const fits = (algorithm: DkimAlgorithm, p: string, privateKey: Redacted.Redacted) => {
  const digest = algorithm === "rsa" ? "sha256" : null
  const text = Buffer.from("signed header fields")
  const signature = sign(digest, text, Redacted.value(privateKey))
  return verify(digest, text, publicOf(algorithm, p), signature)
}

layer(world({ dkim: "rsa" }), { excludeTestServices: true })("DKIM keys", (it) => {
  it.effect("what is published verifies what the private half signs, under a selector of its own", () =>
    Effect.gen(function* () {
      for (const algorithm of ["rsa", "ed25519"] as const) {
        const [one, two] = [yield* makePair(algorithm), yield* makePair(algorithm)]
        assert.isTrue(fits(algorithm, one.publicKey, one.privateKey))
        assert.isFalse(fits(algorithm, two.publicKey, one.privateKey))
        assert.match(one.selector, /^[a-z0-9-]{1,63}$/)
        assert.notStrictEqual(one.selector, two.selector)
      }
      const { publicKey } = yield* makePair("rsa")
      assert.strictEqual(publicOf("rsa", publicKey).asymmetricKeyDetails?.modulusLength, 2048)
    }))

  it.effect("a move keeps the private half sealed, and it is the published one's", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const vault = yield* Vault
      const [alice, bob, carol] = [yield* person(), yield* person(), yield* person()]
      const domainId = yield* domain(alice)
      yield* force(carol.id, domainId, bob.email)
      const [row] = yield* sql<{
        id: string
        selector: string
        public_key: string
        private_kid: string
        private_key: Uint8Array
      }>`select id::text as id, selector, public_key, private_kid, private_key from dkim_keys
        where domain_id = ${domainId}::uuid`
      assert.strictEqual(row!.selector, (yield* domainRow(domainId)).dkim_selector)
      assert.notInclude(Buffer.from(row!.private_key).toString("latin1"), "PRIVATE KEY")
      const place = { table: "dkim_keys", column: "private_key", row: row!.id }
      const opened = vault.open({ kid: row!.private_kid, bytes: row!.private_key }, place)
      assert.isTrue(fits("rsa", row!.public_key, opened))
      const [told] = yield* sql<{ payload: string }>`
        select payload from outbox where subject = ${`directory.v1.domain.${domainId}`}`
      assert.strictEqual(JSON.parse(told!.payload).dkim_public_key, row!.public_key)
      assert.notInclude(told!.payload, "PRIVATE")
    }).pipe(timed))

  it.effect("is made only for what may move now: while nothing does, the timers come again and again", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const transfers = yield* Transfers
      const [alice, bob] = [yield* person(), yield* person()]
      const { id } = yield* offer(alice.id, yield* domain(alice), bob.email)
      yield* accept(bob.id, id, { rotateDkim: true })
      yield* TestClock.adjust(day)
      yield* sql`update transfer_feature set enabled = false`
      const settling = Effect.map(transfers.settle(id), (moved) => assert.isFalse(moved))
      yield* settling
      // Of this process, in microseconds, whatever else the machine does.
      const costOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
        Effect.gen(function* () {
          const before = process.cpuUsage()
          yield* Effect.repeat(effect, { times: 3 })
          const { system, user } = process.cpuUsage(before)
          return system + user
        })
      const [settled, made] = [yield* costOf(settling), yield* costOf(makePair("rsa"))]
      assert.isBelow(3 * settled, made)
      yield* sql`update transfer_feature set enabled = true`
      assert.isTrue(yield* transfers.settle(id))
    }).pipe(timed))
})
