/** A person requests an institution, and becomes its Sponsor. */
import { Clock, Effect } from "effect"
import { RequestId } from "../../../schemas/BrandedIds.ts"
import { domainName } from "../../../schemas/identity/Addresses.ts"
import type * as Wire from "../../../schemas/identity/RequestBodies.ts"
import { InvalidToken } from "../../../schemas/problems/IdentityProblems.ts"
import { canonical } from "../../platform/security/CanonicalJson.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, load, unchanged } from "../../platform/database/FencedCommand.ts"
import { Ids } from "../../platform/Ids.ts"
import { newRequest, requestOf } from "../../requests/RequestRows.ts"
import { activeRow, isActiveIn } from "./ActivePerson.ts"
import { organizationOf } from "./RequestViews.ts"
import { type By, filing } from "./Filing.ts"

export const askingForOrganization = Effect.gen(function* () {
  const { sql } = yield* Database
  const ids = yield* Ids
  const { filed } = yield* filing
  const added = newRequest(sql)

  return Effect.fn("Requests.organization")(function* ({ personId, reason, ...fields }: Wire.RequestFields & By) {
    const person = activeRow(sql, personId)
    const { active } = yield* load<{ active: string }>(sql, sql`select ${answerTo(sql, person)} as active`)

    if (!isActiveIn(active)) return yield* new InvalidToken()
    const domains = [...new Set(fields.domains.map((domain) => domainName(domain)!))]
    const contacts = [...new Map(fields.contacts.map((contact) => [canonical(contact), contact])).values()]
    const row = requestOf({
      id: RequestId.make(yield* ids.next),
      kind: "organization",
      state: "submitted",
      author: personId,
      fields: { ...fields, domains, contacts },
      reason,
    }, new Date(yield* Clock.currentTimeMillis))

    yield* fence(sql, unchanged(sql, person, active), added(row))
    return organizationOf(row, yield* filed(row, ["operator"]))
  })
})
