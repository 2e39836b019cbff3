/** Invitations after a restore: the new epoch made their links void (Epochs.ts). */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { invitations } from "../../../services/decisions/Invitations.ts"
import { Requests } from "../../../services/decisions/Requests.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { timed } from "../../support/Fixtures.ts"
import { person } from "../../support/TestIdentity.ts"
import { acceptInvitation, auditOf, codeOf, enroll, fixture, services, sign, tokenOf } from "./RequestFixture.ts"

layer(services, { excludeTestServices: true, timeout: "2 minutes" })("Invitations", (it) => {
  it.effect("an invitation with a void link is mailed anew, once, and shows the delivery of the new mail", () =>
    timed(Effect.gen(function* () {
      const { abe, ada, fern, sam } = yield* fixture
      const [ned, mia] = [yield* person({ email: "ned@new.example" }), yield* person({ email: "mia@new.example" })]
      const dead = yield* enroll(fern, sam, "ned@new.example")
      const sound = yield* enroll(fern, sam, "mia@new.example")
      yield* sign(dead, "administrator", ada)
      yield* sign(sound, "administrator", abe)
      const { sql } = yield* Database
      const mailsOf = (id: string) =>
        Effect.map(
          sql<{ id: string }>`select id::text as id from mails where subject_id = ${id} order by id`,
          (rows) => rows.map(({ id }) => id),
        )
      const first = yield* mailsOf(dead.enrollment_id)
      yield* sql`update mails set state = 'sent', ended_at = created_at, not_before = null where id = ${first[0]}::uuid`
      const [lost, kept] = [yield* tokenOf(dead.enrollment_id), yield* tokenOf(sound.enrollment_id)]
      yield* sql`
        update requests set token_hash = sha256(uuid_send(gen_random_uuid())) where id = ${dead.enrollment_id}::uuid`
      assert.strictEqual(yield* codeOf(acceptInvitation(ned, lost)), "not_found")

      const { renewLinks } = yield* invitations
      assert.strictEqual(yield* renewLinks, 1)
      assert.strictEqual(yield* renewLinks, 0)
      const mails = yield* mailsOf(dead.enrollment_id)
      assert.lengthOf(mails, 2)
      assert.lengthOf(yield* mailsOf(sound.enrollment_id), 1)
      const requests = yield* Requests
      const mine = (yield* requests.mine(sam)).items.find(({ id }) => id === dead.enrollment_id)
      assert.deepInclude(mine!.delivery, { state: "queued", message_id: mails.find((id) => !first.includes(id))! })
      assert.deepStrictEqual((yield* auditOf(dead.enrollment_id)).at(-1), {
        action: "enrollment.link-renewed",
        actor: "system",
      })
      assert.strictEqual((yield* acceptInvitation(ned, yield* tokenOf(dead.enrollment_id))).state, "accepted")
      assert.strictEqual((yield* acceptInvitation(mia, kept)).state, "accepted")
    })))
})
