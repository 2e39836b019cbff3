/** How each person wants its notices (docs/requests.md). Without a choice they are gathered. */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import type { NoticeDelivery } from "../../schemas/identity/NoticeDelivery.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Database } from "../platform/database/Database.ts"
import type { InTransaction } from "../platform/database/UnitOfWork.ts"

export class NoticeSettings extends Context.Service<NoticeSettings, {
  readonly deliveryOf: (personId: PersonId) => Effect.Effect<NoticeDelivery, SqlError.SqlError>
  /**
   * Sets how the person's notices are delivered from the next mail on, and audits a change. Notices that were put off
   * to the end of a pause stay put off.
   */
  readonly setDelivery: (
    personId: PersonId,
    delivery: NoticeDelivery,
  ) => Effect.Effect<void, SqlError.SqlError, InTransaction>
}>()("bailiwick/services/decisions/NoticeSettings") {
  static readonly layer = Layer.effect(
    NoticeSettings,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const audit = yield* Audit

      const deliveryOf = Effect.fn("NoticeSettings.deliveryOf")(function* (personId: PersonId) {
        const [row] = yield* sql<{ delivery: NoticeDelivery }>`
          select delivery from notice_settings where person_id = ${personId}`
        return row?.delivery ?? "digest"
      })

      const setDelivery = Effect.fn("NoticeSettings.setDelivery")(function* (
        personId: PersonId,
        delivery: NoticeDelivery,
      ) {
        const changed = yield* sql`
          insert into notice_settings as s (person_id, delivery) values (${personId}, ${delivery})
          on conflict (person_id) do update set delivery = excluded.delivery where s.delivery <> excluded.delivery
          returning person_id`
        if (changed.length === 0) return
        const person = `person:${personId}`
        yield* audit.append({
          action: "notice-settings.changed",
          actor: person,
          subject: person,
          outcome: "done",
          details: { delivery },
        })
      })

      return NoticeSettings.of({ deliveryOf, setDelivery })
    }),
  )
}
