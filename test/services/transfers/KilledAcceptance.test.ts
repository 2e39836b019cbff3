/**
 * An acceptance with a new DKIM key, cut off before and after its commit: key, notices and state are written together
 * or not at all, and the repeated command leaves exactly one key.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { Database } from "../../../services/platform/database/Database.ts"
import { Failpoints, type FaultPoint } from "../../../services/platform/Failpoints.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import { command, domain, fixture, offer, person, timed } from "./TransferFixture.ts"

const writtenFor = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<{ status: string; keys: ReadonlyArray<string>; mails: number; notices: number }>`
    select t.status, array(select k.selector from dkim_keys k where k.transfer_id = t.id) as keys,
      (select count(*)::int from mails m where m.subject_id = t.id::text and m.kind = 'transfer.key') as mails,
      (select count(*)::int from notifications n join dkim_keys k on k.transfer_id = t.id
        where n.body like '%' || k.public_key || '%') as notices
    from transfers t where t.id = ${id}::uuid`
  return row!
})

layer(fixture(), { excludeTestServices: true })("an acceptance with a new DKIM key, cut off", (it) => {
  for (const [point, done] of [["transfer.accept.written", false], ["transfer.accept.committed", true]] as const) {
    it.effect(`at ${point}: ${done ? "everything" : "nothing"} is written, and the repeated command leaves one key`, () =>
      Effect.gen(function* () {
        const transfers = yield* Transfers
        const [alice, bob] = [yield* person(), yield* person()]
        const domainId = yield* domain(alice)
        const { id } = yield* offer(alice.id, domainId, bob.email)
        const acceptance = {
          ...command(),
          accountId: bob.id,
          transferId: id,
          byToken: false,
          orgId: null,
          rotateDkim: true,
        }
        const hit = (here: FaultPoint) => {
          if (here === point) throw new Error("cut off")
        }
        const cut = yield* Effect.exit(Effect.provideService(transfers.accept(acceptance), Failpoints, { hit }))
        assert.isTrue(Exit.isFailure(cut))
        const left = yield* writtenFor(id)
        assert.deepInclude(
          left,
          done ? { status: "accepted", mails: 1, notices: 1 } : { status: "pending", mails: 0, notices: 0 },
        )
        assert.lengthOf(left.keys, done ? 1 : 0)

        assert.strictEqual((yield* transfers.accept(acceptance)).status, "accepted")
        const after = yield* writtenFor(id)
        assert.deepInclude(after, { status: "accepted", mails: 1, notices: 1 })
        assert.lengthOf(after.keys, 1)
        if (done) assert.deepStrictEqual(after, left)
        yield* transfers.accept(acceptance)
        assert.deepStrictEqual(yield* writtenFor(id), after)
      }).pipe(timed))
  }
})
