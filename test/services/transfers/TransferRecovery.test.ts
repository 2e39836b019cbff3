import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TransferId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { lostTransfers, lostTransfersLayer, publishedTransfer } from "../../../services/transfers/TransferRecovery.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import { day, hour, noon } from "../../support/Fixtures.ts"
import {
  accept,
  codeOf,
  command,
  domain,
  domainRow,
  fixture,
  force,
  offer,
  person,
  published,
  stop,
  timed,
  tokenOf,
} from "./TransferFixture.ts"

const found = Effect.fnUntraced(function* (id: TransferId) {
  return (yield* (yield* Transfers).find("id", id))!
})

const pair = Effect.gen(function* () {
  const [alice, bob] = [yield* person({ plan: "business" }), yield* person({ plan: "business" })]
  const domainId = yield* domain(alice)
  return { alice, bob, domainId, transfer: yield* offer(alice.id, domainId, bob.email) }
})

/** The last published message about a domain's transfer. */
const lastTold = Effect.fnUntraced(function* (domainId: string) {
  return publishedTransfer((yield* published(domainId)).at(-1)!.payload)!
})

/** Writes a transfer's row back, as a restored backup has it. */
const putBack = Effect.fnUntraced(function* (id: string, before: object) {
  const { sql } = yield* Database
  const columns = sql.literal(Object.keys(before).map((name) => `${name} = r.${name}`).join(", "))
  yield* sql`update transfers t set ${columns} from jsonb_populate_record(null::transfers, ${
    sql.json(before as never)
  }) r
    where t.id = ${id}::uuid`
})

const rowOf = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<{ row: Record<string, unknown> }>`
    select to_jsonb(t) - 'id' - 'version' as row from transfers t where id = ${id}::uuid`
  return row!.row
})

/** Makes mailed links invalid, as a new epoch does. */
const invalidateLinks = Effect.flatMap(
  Database,
  ({ sql }) =>
    sql`update transfers set accept_hash = sha256(uuid_send(gen_random_uuid())),
    stop_hash = case when stop_hash is not null then sha256(uuid_send(gen_random_uuid())) end
    where status in ('pending', 'accepted')`,
)

layer(Layer.provideMerge(lostTransfersLayer, fixture()), { excludeTestServices: true, timeout: "2 minutes" })(
  "transfers of a restored database",
  (it) => {
    it.effect("one that was stopped after the backup is stopped again", () =>
      Effect.gen(function* () {
        const { redecide } = yield* lostTransfers
        const { alice, bob, domainId, transfer } = yield* pair
        yield* accept(bob.id, transfer.id)
        const backup = yield* rowOf(transfer.id)
        yield* stop(transfer.id)
        const told = yield* lastTold(domainId)
        yield* putBack(transfer.id, backup)
        assert.strictEqual((yield* found(transfer.id)).status, "accepted")
        assert.strictEqual(yield* redecide(told), "redecided")
        assert.deepInclude(yield* found(transfer.id), { status: "reversed", cooloffUntil: null })
        assert.strictEqual((yield* domainRow(domainId)).account_id, alice.id)
        assert.strictEqual(yield* redecide(told), "known")
        assert.strictEqual((yield* published(domainId)).at(-1)!.status, "reversed")
      }).pipe(timed))

    it.effect("one that was completed after the backup is completed again, from pending or accepted", () =>
      Effect.gen(function* () {
        const { redecide } = yield* lostTransfers
        for (const accepted of [true, false]) {
          const { alice, bob, domainId, transfer } = yield* pair
          const offered = yield* rowOf(transfer.id)
          yield* accept(bob.id, transfer.id)
          const backup = accepted ? yield* rowOf(transfer.id) : offered
          const told = {
            id: transfer.id,
            domain_id: domainId,
            status: "completed" as const,
            target_org_id: bob.workspaceId,
          }
          yield* putBack(transfer.id, backup)
          assert.strictEqual(yield* redecide(told), "redecided")
          assert.deepInclude(yield* found(transfer.id), { status: "completed", targetOrgId: bob.workspaceId })
          assert.deepInclude(yield* domainRow(domainId), { account_id: bob.id, owner_held: true })
          assert.notStrictEqual(alice.id, bob.id)
        }
      }).pipe(timed))

    it.effect("one that was completed after the backup gets the DKIM key of its acceptance, if the backup has it", () =>
      Effect.gen(function* () {
        const { redecide } = yield* lostTransfers
        const { sql } = yield* Database
        for (const kept of [true, false]) {
          const { bob, domainId, transfer } = yield* pair
          yield* accept(bob.id, transfer.id, { rotateDkim: true })
          const [key] = yield* sql<{ selector: string }>`
            select selector from dkim_keys where transfer_id = ${transfer.id}::uuid`
          if (!kept) yield* sql`delete from dkim_keys where transfer_id = ${transfer.id}::uuid`
          const told = { id: transfer.id, domain_id: domainId, target_org_id: bob.workspaceId }
          assert.strictEqual(yield* redecide({ ...told, status: "completed" }), "redecided")
          assert.strictEqual((yield* found(transfer.id)).rotateDkim, kept)
          assert.strictEqual((yield* domainRow(domainId)).dkim_selector, kept ? key!.selector : "old")
        }
      }).pipe(timed))

    it.effect("a reversal after the backup is mailed with its reason and deletes the DKIM key", () =>
      Effect.gen(function* () {
        const { redecide } = yield* lostTransfers
        const { sql } = yield* Database
        const { bob, domainId, transfer } = yield* pair
        yield* accept(bob.id, transfer.id, { rotateDkim: true })
        const told = { id: transfer.id, domain_id: domainId, target_org_id: bob.workspaceId }
        yield* redecide({ ...told, status: "reversed", event: "undeliverable" })
        assert.deepInclude(yield* found(transfer.id), { status: "reversed", stopUsed: false })
        const mails = yield* sql<{ event: string }>`
          select distinct args->>'event' as event from mails
          where subject_id = ${transfer.id} and kind = 'transfer.reversed'`
        assert.deepStrictEqual([...mails], [{ event: "undeliverable" }])
        assert.strictEqual((yield* sql`select from dkim_keys where transfer_id = ${transfer.id}::uuid`).length, 0)
      }).pipe(timed))

    it.effect("one that was accepted after the backup is pending again; an unknown one is not created", () =>
      Effect.gen(function* () {
        const { redecide } = yield* lostTransfers
        const { bob, domainId, transfer } = yield* pair
        const backup = yield* rowOf(transfer.id)
        yield* accept(bob.id, transfer.id)
        const told = yield* lastTold(domainId)
        assert.strictEqual(told.status, "accepted")
        yield* putBack(transfer.id, { ...backup, stop_hash: null, stop_kid: null, stop_nonce: null })
        assert.strictEqual(yield* redecide(told), "known")
        assert.strictEqual((yield* found(transfer.id)).status, "pending")
        const unknown = { ...told, id: TransferId.make(command().commandId), status: "completed" as const }
        assert.strictEqual(yield* redecide(unknown), "unknown")
        assert.isNull(publishedTransfer("nothing of ours"))
      }).pipe(timed))

    it.effect("invalid links are mailed again, once, and an accepted transfer can be stopped for an hour longer", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const transfers = yield* Transfers
        const { renewLinks } = yield* lostTransfers
        yield* sql`delete from transfers`
        const [open, taken] = [yield* pair, yield* pair]
        yield* accept(taken.bob.id, taken.transfer.id)
        const old = [
          yield* tokenOf("accept", open.transfer.id),
          yield* tokenOf("stop", taken.transfer.id),
        ] as const
        yield* invalidateLinks
        assert.isNull(yield* transfers.find("accept", old[0]))
        assert.isNull(yield* transfers.find("stop", old[1]))
        yield* sql`delete from mails`
        assert.strictEqual(yield* renewLinks, 2)
        assert.strictEqual(yield* renewLinks, 0)
        const fresh = [yield* tokenOf("accept", open.transfer.id), yield* tokenOf("stop", taken.transfer.id)] as const
        assert.strictEqual((yield* transfers.find("accept", fresh[0]))?.id, open.transfer.id)
        assert.strictEqual((yield* transfers.find("stop", fresh[1]))?.id, taken.transfer.id)
        assert.isNull(yield* transfers.find("accept", old[0]))
        assert.strictEqual((yield* found(taken.transfer.id)).cooloffUntil, noon + day + hour)
        assert.deepStrictEqual(
          yield* sql<
            { kind: string; recipient: string }
          >`select kind, recipient from mails where kind like 'transfer.%' order by kind`,
          [
            { kind: "transfer.invitation", recipient: open.bob.email },
            { kind: "transfer.stop", recipient: taken.alice.email },
          ],
        )
      }).pipe(timed))

    it.effect("a paused installation begins, accepts and completes no transfer; decline, cancel and stop work", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const transfers = yield* Transfers
        const { bob, domainId, transfer } = yield* pair
        const [began, refused, taken, stopped] = [yield* pair, yield* pair, yield* pair, yield* pair]
        const free = yield* domain(began.alice)
        const before = { ...command(), accountId: began.bob.id, transferId: began.transfer.id }
        const acceptance = { ...before, byToken: false, orgId: null, rotateDkim: false }
        const admitted = { ...command(), accountId: stopped.bob.id, transferId: stopped.transfer.id }
        yield* transfers.accept({ ...admitted, byToken: false, orgId: null, rotateDkim: false })
        yield* accept(bob.id, transfer.id)
        yield* sql`update transfers set cooloff_until = ${new Date(noon)} where id = ${transfer.id}::uuid`
        yield* sql`update installation set state = 'held', held_since = ${new Date(noon)}, held_reason = 'restored'`
        assert.isFalse(yield* transfers.settle(transfer.id))
        assert.strictEqual(yield* codeOf(stop(transfer.id)), "not_stoppable")
        const { email } = began.bob
        assert.strictEqual(yield* codeOf(transfers.accept(acceptance)), "held")
        assert.strictEqual(yield* codeOf(offer(began.alice.id, free, email)), "held")
        assert.strictEqual(yield* codeOf(force(bob.id, free, email, false)), "held")
        assert.strictEqual(yield* codeOf(force(bob.id, began.domainId, email, false)), "held")
        // Other refusals are answered as usual, and a repeated command gets its first answer.
        assert.strictEqual(yield* codeOf(accept(bob.id, began.transfer.id)), "wrong_recipient")
        assert.strictEqual(yield* codeOf(offer(bob.id, free, email)), "not_found")
        assert.strictEqual(yield* codeOf(force(bob.id, free, "nobody@example.com", false)), "target_not_found")
        const again = yield* transfers.accept({ ...admitted, byToken: false, orgId: null, rotateDkim: false })
        assert.strictEqual(again.status, "accepted")
        const statuses = [
          yield* transfers.decline({ ...command(), accountId: refused.bob.id, transferId: refused.transfer.id }),
          yield* transfers.cancel({ ...command(), accountId: taken.alice.id, transferId: taken.transfer.id }),
          yield* stop(stopped.transfer.id),
        ].map(({ status }) => status)
        assert.deepStrictEqual(statuses, ["declined", "cancelled", "reversed"])
        assert.strictEqual((yield* found(began.transfer.id)).status, "pending")
        assert.strictEqual((yield* domainRow(free)).account_id, began.alice.id)
        yield* sql`update installation set state = 'open', held_since = null, held_reason = null`
        assert.strictEqual((yield* transfers.accept(acceptance)).status, "accepted")
        assert.isTrue(yield* transfers.settle(transfer.id))
        assert.strictEqual((yield* domainRow(domainId)).account_id, bob.id)
      }).pipe(timed))
  },
)
