/**
 * An account's preferences: which channels it wants for each category. Only the account's own choices are stored;
 * defaults are merged at the read, so that a new default reaches every account without a choice.
 */
import { Clock, Context, Effect, Layer, Predicate } from "effect"
import type { AccountId, ApiKeyId } from "../../schemas/BrandedIds.ts"
import type { Credential } from "../../schemas/api/CredentialsApi.ts"
import {
  Category,
  type Category as CategoryName,
  Channel,
  type Channel as ChannelName,
  defaultPreferences,
  type Preferences as PreferencesMap,
} from "../../schemas/mail/Notification.ts"
import type { InvalidCredentials } from "../../schemas/problems/HttpProblems.ts"
import { PreferencesInvalid } from "../../schemas/problems/NotificationProblems.ts"
import { HTTPValidationError } from "../../schemas/Validation.ts"
import { Principals, who } from "../authentication/Principals.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Database } from "../platform/database/Database.ts"

const own = (value: unknown, key: string): unknown =>
  Predicate.isObject(value) && Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined

/** Whether a channel is on for a category, by the stored choices (JSON, or nothing) or by default. */
export const chosen = (choices: unknown, category: CategoryName, channel: ChannelName): boolean => {
  const choice = own(own(choices, category), channel)
  return typeof choice === "boolean" ? choice : defaultPreferences[category][channel]
}

const fullMap = (choices: unknown): PreferencesMap => {
  const of = (category: CategoryName) => ({
    web: chosen(choices, category, "web"),
    email: chosen(choices, category, "email"),
    slack: chosen(choices, category, "slack"),
  })
  return { alerts: of("alerts"), sends: of("sends"), team: of("team"), domains: of("domains") }
}

type Choices = Partial<Record<CategoryName, Partial<Record<ChannelName, boolean>>>>

const isMap = (value: unknown) => Predicate.isObject(value) && !Array.isArray(value)

/** The choices in a body: known categories and channels of its `preferences`; everything else is ignored. */
const read = Effect.fnUntraced(function* (body: unknown) {
  const asked = own(body, "preferences")
  if (!isMap(asked)) return yield* new PreferencesInvalid()
  const faults: Array<{ loc: ReadonlyArray<string>; type: string; msg: string }> = []
  const choices: Choices = {}
  for (const category of Category.literals) {
    const channels = own(asked, category)
    if (channels === undefined) continue
    const loc = ["body", "preferences", category]
    if (!isMap(channels)) {
      faults.push({ loc, type: "dict_type", msg: "Input should be a valid dictionary" })
      continue
    }
    for (const channel of Channel.literals) {
      const on = own(channels, channel)
      if (typeof on === "boolean") choices[category] = { ...choices[category], [channel]: on }
      else if (on !== undefined) {
        faults.push({ loc: [...loc, channel], type: "bool_type", msg: "Input should be a valid boolean" })
      }
    }
  }
  return faults.length === 0 ? choices : yield* new HTTPValidationError({ detail: faults })
})

export class Preferences extends Context.Service<Preferences, {
  /** The full map of the credential's account. */
  readonly get: (credential: Credential["Service"]) => Effect.Effect<PreferencesMap, InvalidCredentials>
  /**
   * Merges the `preferences` of a request's body into the account's choices; returns the full map. Fails with
   * PreferencesInvalid where `preferences` is no object, and with a 422 that names every known channel that is no
   * boolean.
   */
  readonly set: (
    accountId: AccountId,
    body: unknown,
  ) => Effect.Effect<PreferencesMap, PreferencesInvalid | HTTPValidationError>
}>()("bailiwick/services/notifications/Preferences") {
  static readonly layer = Layer.effect(
    Preferences,
    Effect.gen(function* () {
      const { reads, sql } = yield* Database
      const audit = yield* Audit
      const principals = yield* Principals

      const get: Preferences["Service"]["get"] = Effect.fn("Preferences.get")(function* (credential) {
        const [row] = yield* reads<{ key_id: ApiKeyId | null; choices: unknown }>`
          with who as (${who(reads, credential)})
          select key_id::text, p.choices from who left join notification_preferences p
            on p.account_id = who.account_id`.pipe(Effect.orDie)
        return fullMap((yield* principals.seen(row)).choices)
      })

      const set: Preferences["Service"]["set"] = Effect.fn("Preferences.set")(function* (accountId, body) {
        const choices = yield* read(body)
        const now = new Date(yield* Clock.currentTimeMillis)
        const changed = audit.append({
          action: "notification-preferences.changed",
          actor: `account:${accountId}`,
          subject: `account:${accountId}`,
          outcome: "done",
        })
        // Merged category by category in one statement, so that of two concurrent requests both count.
        const merge = sql<{ choices: unknown }>`
          insert into notification_preferences as p (account_id, choices, updated_at)
          values (${accountId}::uuid, ${sql.json(choices)}, ${now})
          on conflict (account_id) do update set updated_at = excluded.updated_at, choices = p.choices || (
            select coalesce(jsonb_object_agg(c.key, coalesce(p.choices -> c.key, '{}') || c.value), '{}')
            from jsonb_each(excluded.choices) c
          )
          returning choices`
        const [row] = yield* sql.withTransaction(Effect.tap(merge, () => changed)).pipe(Effect.orDie)
        return fullMap(row!.choices)
      })

      return Preferences.of({ get, set })
    }),
  )
}
