import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { createPublicKey, sign, verify } from "node:crypto"
import { Database } from "../../../services/platform/database/Database.ts"
import { RsaKeyPairs } from "../../../services/platform/security/RsaKeyPairs.ts"
import { Vault } from "../../../services/platform/security/Vault.ts"
import { type DkimAlgorithm, makePair } from "../../../services/transfers/DkimKeys.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import { transferTemplates } from "../../../services/transfers/TransferMails.ts"
import { day } from "../../support/Fixtures.ts"
import {
  accept,
  codeOf,
  command,
  domain,
  domainRow,
  feed,
  fixture,
  force,
  now,
  offer,
  person,
  stop,
  timed,
} from "./TransferFixture.ts"

/** The public key that a verifier builds from a DNS record's `p=`. */
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

const keysOf = Effect.fnUntraced(function* (domainId: string) {
  const { sql } = yield* Database
  return [
    ...(yield* sql<{ selector: string; public_key: string; transfer_id: string }>`
      select selector, public_key, transfer_id::text as transfer_id from dkim_keys where domain_id = ${domainId}::uuid`),
  ]
})

/** The mails of a transfer, rendered as they would be sent now. */
const letters = Effect.fnUntraced(function* (transferId: string) {
  const { sql } = yield* Database
  const templates = yield* transferTemplates(new URL("https://mail.example"))
  const mails = yield* sql<{ id: string; kind: string; recipient: string; args: Record<string, string> }>`
    select id::text as id, kind, recipient, args from mails where subject_id = ${transferId} order by id`
  const rendered = yield* Effect.forEach(mails, (mail) =>
    Effect.map(
      templates.find(({ kind }) => kind === mail.kind)!.render({ ...mail, subjectId: transferId }),
      (letter) => letter === null ? [] : [{ kind: mail.kind, recipient: mail.recipient, text: letter.text }],
    ))
  return rendered.flat()
})

layer(fixture({ dkim: "rsa" }), { excludeTestServices: true })("DKIM keys", (it) => {
  it.effect("a pair's published key verifies its private key's signature; each pair has its own selector", () =>
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

  it.effect("a move stores the sealed private key of the published key, and publishes only the public one", () =>
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
      const cell = { table: "dkim_keys", column: "private_key", row: row!.id }
      const opened = vault.open({ kid: row!.private_kid, bytes: row!.private_key }, cell)
      assert.isTrue(fits("rsa", row!.public_key, opened))
      const [told] = yield* sql<{ payload: string }>`
        select payload from outbox where subject = ${`directory.v1.domain.${domainId}`}`
      assert.strictEqual(JSON.parse(told!.payload).dkim_public_key, row!.public_key)
      assert.notInclude(told!.payload, "PRIVATE")
    }).pipe(timed))

  it.effect("no key is generated while transfers may not complete, since their timers fire again and again", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const transfers = yield* Transfers
      const [alice, bob] = [yield* person(), yield* person()]
      const { id } = yield* offer(alice.id, yield* domain(alice), bob.email)
      yield* accept(bob.id, id, { rotateDkim: true })
      yield* TestClock.adjust(day)
      yield* sql`update transfer_feature set enabled = false`
      // As an older version accepted it: the completion generates the key.
      yield* sql`delete from dkim_keys where transfer_id = ${id}::uuid`
      let made = 0
      const pair = yield* RsaKeyPairs
      const counted = Effect.suspend(() => {
        made++
        return pair
      })
      const settle = Effect.provideService(transfers.settle(id), RsaKeyPairs, counted)
      for (let n = 0; n < 3; n++) assert.isFalse(yield* settle)
      assert.strictEqual(made, 0)
      yield* sql`update transfer_feature set enabled = true`
      assert.isTrue(yield* settle)
      assert.strictEqual(made, 1)
    }).pipe(timed))

  it.effect("a key is generated at the acceptance, sent to the recipient alone, and used by the completion", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const transfers = yield* Transfers
      const [alice, bob, carol] = [yield* person(), yield* person(), yield* person()]
      const domainId = yield* domain(alice)
      const { domain_name: name, id } = yield* offer(alice.id, domainId, bob.email)
      const active = { selector: "old", status: "active", record_name: `old._domainkey.${name}` } as const
      assert.deepInclude((yield* transfers.dkim(alice.id, domainId)).keys, {
        ...active,
        algorithm: null,
        public_key: null,
        record_value: null,
        transfer_id: null,
        effective_at: null,
      })
      assert.strictEqual(yield* codeOf(transfers.dkim(bob.id, domainId)), "not_found")
      const acceptance = {
        ...command(),
        accountId: bob.id,
        transferId: id,
        byToken: false,
        orgId: null,
        rotateDkim: true,
      }
      yield* transfers.accept(acceptance)
      // The answer was lost, and the command is sent again.
      yield* transfers.accept(acceptance)
      const [key, more] = yield* keysOf(domainId)
      assert.isUndefined(more)
      const record = `v=DKIM1; k=rsa; p=${key!.public_key}`
      const shown = (yield* transfers.dkim(bob.id, domainId)).keys
      assert.deepStrictEqual(shown, (yield* transfers.dkim(alice.id, domainId)).keys)
      assert.deepStrictEqual(shown.map(({ status }) => status), ["active", "prepared"])
      assert.deepStrictEqual(shown[1], {
        selector: key!.selector,
        status: "prepared",
        algorithm: "rsa",
        public_key: key!.public_key,
        record_name: `${key!.selector}._domainkey.${name}`,
        record_value: record,
        transfer_id: id,
        effective_at: new Date((yield* now) + day).toISOString(),
      })
      assert.strictEqual(yield* codeOf(transfers.dkim(carol.id, domainId)), "not_found")
      const mails = () => letters(id)
      const [letter, other] = (yield* mails()).filter(({ text }) => text.includes(record))
      assert.deepStrictEqual([letter!.recipient, other], [bob.email, undefined])
      assert.include(letter!.text, `Name: ${key!.selector}._domainkey.${name}`)
      const notices = yield* sql<{ account_id: string }>`
        select account_id::text as account_id from notifications where body like ${`%${record}%`}`
      assert.deepStrictEqual(notices.map(({ account_id }) => account_id), [bob.id])
      assert.strictEqual((yield* domainRow(domainId)).dkim_selector, "old")
      yield* TestClock.adjust(day)
      const after = (yield* transfers.dkim(bob.id, domainId)).keys
      assert.deepStrictEqual(after, [{ ...shown[1]!, status: "active", effective_at: null }])
      assert.deepStrictEqual(yield* keysOf(domainId), [key!])
      assert.strictEqual((yield* domainRow(domainId)).dkim_selector, key!.selector)
      assert.strictEqual(yield* codeOf(transfers.dkim(alice.id, domainId)), "not_found")
      const completed = (yield* mails()).filter(({ kind, text }) =>
        kind === "transfer.completed" && text.includes(record)
      )
      assert.deepStrictEqual(completed.map(({ recipient }) => recipient), [bob.email])
    }).pipe(timed))

  it.effect("a key is deleted with a reversed transfer; a forced transfer's key goes to the recipient alone", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [alice, bob, carol] = [yield* person({ plan: "pro" }), yield* person({ plan: "pro" }), yield* person()]
      const accepted = Effect.fnUntraced(function* () {
        const domainId = yield* domain(alice)
        const { id } = yield* offer(alice.id, domainId, bob.email)
        yield* accept(bob.id, id, { rotateDkim: true })
        assert.strictEqual((yield* keysOf(domainId)).length, 1)
        return { id, domainId }
      })
      const stopped = yield* accepted()
      yield* stop(stopped.id)
      assert.deepStrictEqual(yield* keysOf(stopped.domainId), [])
      assert.isNull((yield* letters(stopped.id)).find(({ kind }) => kind === "transfer.key") ?? null)
      const away = yield* accepted()
      yield* feed({ kind: "domain", id: away.domainId, removed: true })
      assert.deepStrictEqual(yield* keysOf(away.domainId), [])
      const forced = yield* accepted()
      const { id } = yield* force(carol.id, forced.domainId, bob.email)
      const [key, more] = yield* keysOf(forced.domainId)
      assert.deepStrictEqual([key!.transfer_id, more], [id, undefined])
      const told = (yield* letters(id)).filter(({ text }) => text.includes(`p=${key!.public_key}`))
      assert.deepStrictEqual(told.map(({ recipient }) => recipient), [bob.email])
      const notices = yield* sql<{ account_id: string }>`
        select account_id::text as account_id from notifications where body like ${`%p=${key!.public_key}%`}`
      assert.deepStrictEqual(notices.map(({ account_id }) => account_id), [bob.id])
    }).pipe(timed))

  it.effect("a key missing since an older version accepted the transfer is generated at the completion", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [alice, bob] = [yield* person(), yield* person()]
      const domainId = yield* domain(alice)
      const { id } = yield* offer(alice.id, domainId, bob.email)
      yield* accept(bob.id, id, { rotateDkim: true })
      yield* sql`delete from dkim_keys where transfer_id = ${id}::uuid`
      yield* TestClock.adjust(day)
      assert.isTrue(yield* (yield* Transfers).settle(id))
      const [key] = yield* keysOf(domainId)
      assert.strictEqual((yield* domainRow(domainId)).dkim_selector, key!.selector)
    }).pipe(timed))
})
