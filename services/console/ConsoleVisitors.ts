/**
 * The visitor behind a session of the console: the person and the mail account, as far as they are active now, with
 * what decides which parts of the console they see. The API decides what they may do.
 */
import { Context, Effect, Layer, Schema } from "effect"
import type { AccountId } from "../../schemas/BrandedIds.ts"
import type { ConsoleSession as View } from "../../schemas/identity/ConsoleSession.ts"
import { OwnAccount } from "../../schemas/identity/IdentityAccount.ts"
import type { Plan } from "../../schemas/mail/MailAccount.ts"
import type { DependencyUnavailable } from "../../schemas/problems/HttpProblems.ts"
import { CallerAuthentication } from "../people/CallerAuthentication.ts"
import { People } from "../people/People.ts"
import type { Origin } from "../people/SessionActivity.ts"
import { Database } from "../platform/database/Database.ts"
import { type ConsoleSession, ConsoleSessions } from "./ConsoleSessions.ts"

export type Visitor = Pick<View, "person" | "account" | "operator" | "auditor" | "institutions" | "projects">

/** The visitor of a request without a session. */
export const stranger: Visitor = {
  person: null,
  account: null,
  operator: false,
  auditor: false,
  institutions: [],
  projects: [],
}

const decodeAccount = Schema.decodeUnknownSync(Schema.fromJsonString(OwnAccount))

type Membership = (typeof OwnAccount.Type)["memberships"][number]

/** One entry for each institution, with all effective roles there. */
const institutionsOf = (memberships: ReadonlyArray<Membership>): Visitor["institutions"] => {
  const effective = memberships.filter((membership) => membership.effective)
  return [...Map.groupBy(effective, ({ institution_id }) => institution_id)].map(([institution_id, all]) => ({
    institution_id,
    name: all[0]!.institution_name,
    roles: [...new Set(all.map(({ role }) => role))],
  }))
}

export class ConsoleVisitors extends Context.Service<ConsoleVisitors, {
  /** An account as the console shows it; null where it is not active. */
  readonly account: (accountId: AccountId) => Effect.Effect<Visitor["account"]>
  /** The visitor of a session; `stranger` where neither its person nor its account is active any more. */
  readonly of: (session: ConsoleSession, origin: Origin) => Effect.Effect<Visitor, DependencyUnavailable>
}>()("bailiwick/services/console/ConsoleVisitors") {
  static readonly layer = Layer.effect(
    ConsoleVisitors,
    Effect.gen(function* () {
      const { reads } = yield* Database
      const callers = yield* CallerAuthentication
      const people = yield* People
      const sessions = yield* ConsoleSessions

      const personOf = Effect.fnUntraced(function* (session: ConsoleSession, origin: Origin) {
        if (session.personId === null) return null
        const token = yield* sessions.accessToken(session)
        const { aal, personId } = yield* callers.recognise(`Bearer ${token}`, origin)
        if (personId === null) return null
        const { auditor, display_name, email, memberships, operator, person_id, projects } = decodeAccount(
          yield* people.account(personId),
        )
        return {
          person: { person_id, display_name, email, aal },
          operator,
          auditor,
          institutions: institutionsOf(memberships),
          projects: projects.filter(({ relation }) => relation === "owner")
            .map(({ name, project_id }) => ({ project_id, name })),
        }
      }, Effect.catchTag("InvalidToken", () => Effect.succeed(null)))

      const accountOf = Effect.fnUntraced(function* (accountId: AccountId) {
        const [row] = yield* reads<{ email: string; name: string; plan: Plan; platform_admin: boolean }>`
          select email, name, plan, platform_admin from accounts
          where id = ${accountId}::uuid and status = 'active' and not removed`.pipe(Effect.orDie)
        return row === undefined ? null : { id: accountId, ...row }
      })

      const of = Effect.fn("ConsoleVisitors.of")(function* (session: ConsoleSession, origin: Origin) {
        const account = session.accountId === null ? null : yield* accountOf(session.accountId)
        return { ...stranger, ...(yield* personOf(session, origin)), account }
      })
      return ConsoleVisitors.of({ of, account: accountOf })
    }),
  )
}
