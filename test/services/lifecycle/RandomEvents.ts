/**
 * Random events of every kind, shaped as the domains append them (`EventLog.append` in people, access, projects and
 * keys), about few people and things, so that they collide: similar names, one person under several names.
 */
import { type InstitutionId, PersonId, type ProjectId } from "../../../schemas/BrandedIds.ts"
import { type LifecycleEventKind, lifecycleEventKinds } from "../../../schemas/identity/LifecycleEventKinds.ts"
import type { NewLifecycleEvent } from "../../../services/lifecycle/EventLog.ts"

export const kinds = Object.keys(lifecycleEventKinds) as ReadonlyArray<LifecycleEventKind>

/** Numbers in [0, 1), the same ones for the same seed (mulberry32). */
export const diceOf = (seed: number) => {
  let state = seed >>> 0
  const next = () => {
    state = state + 0x6d2b79f5 >>> 0
    let t = Math.imul(state ^ state >>> 15, state | 1)
    t ^= t + Math.imul(t ^ t >>> 7, t | 61)
    return ((t ^ t >>> 14) >>> 0) / 2 ** 32
  }
  return {
    next,
    below: (n: number) => Math.floor(next() * n),
    one: <A>(of: ReadonlyArray<A>): A => of[Math.floor(next() * of.length)]!,
  }
}
export type Dice = ReturnType<typeof diceOf>

const names = [
  ["https://a.example", "x"],
  ["https://a.example", "b x"],
  ["https://a.example b", "x"],
  ["https://a.example%20b", "x"],
  ["https://a.example", 'x"] ,\\/'],
  ["https://a.example", "ü 😀 \u0007"],
  ["", " "],
] as const

const iss = ([iss, sub]: readonly [string, string]) => ({ format: "iss_sub", iss, sub })

type Said = Pick<NewLifecycleEvent, "payload" | "session">

const accessOf = (dice: Dice, more: object = {}): Said => ({
  payload: {
    reason_admin: { en: "ACCESS_CHANGED_BY_DIRECTORY" },
    access: {
      access_id: dice.one(["a1", "a2", "a/3", "ä 4"]),
      version: 1 + dice.below(9),
      previous_version: dice.one([null, 1, 2]),
      role: dice.one(["user", "editor", "role with spaces"]),
      ...more,
    },
  },
})

const review = (dice: Dice): Said => ({
  payload: { review: { review_id: dice.one(["r1", "r2"]), access_id: dice.one(["a1", "a2"]), version: 1 } },
})

const grant = (dice: Dice): Said => ({
  payload: {
    grant: {
      grant_id: dice.one(["g1", "g2", "g3"]),
      service_id: "service",
      service_issuer: "https://services.example",
      capabilities: dice.one([["events.read"], ["events.read", "snapshot.read"]]),
      environment: "production",
      expires_at: dice.one([null, "2027-01-01T00:00:00.000Z"]),
    },
  },
})

const nothing = (): Said => ({})

const saying: Readonly<Record<LifecycleEventKind, (dice: Dice) => Said>> = {
  "access-granted": accessOf,
  "access-revoked": accessOf,
  "token-claims-change": (dice) => {
    const { payload } = accessOf(dice)
    return { payload: { ...payload, claims: { role: "editor" } } }
  },
  "account-disabled": nothing,
  "account-enabled": nothing,
  "account-purged": nothing,
  "session-revoked": (dice) => dice.next() < 0.5 ? {} : { session: dice.one(["s1", "s 2", 's"3']) },
  "credential-change": () => ({ payload: { credential_type: "fido2-platform", change_type: "create" } }),
  "credential-compromise": () => ({ payload: { credential_type: "password" } }),
  "recovery-information-changed": nothing,
  "assurance-level-change": () => ({ payload: { namespace: "NIST-AAL", current_level: "nist-aal2" } }),
  "identity-linked": (dice) => ({ payload: { [dice.one(["previous", "linked"])]: iss(dice.one(names)) } }),
  "project-registered": () => ({ payload: { project: { version: 1, environment: "production" } } }),
  "project-launched": () => ({ payload: { project: { version: 2 } } }),
  "project-withdrawn": () => ({ payload: { project: { version: 3 } } }),
  "project-owner-changed": (dice) => ({
    payload: {
      owner: { person_id: dice.one(["p1", "p2"]), active: dice.next() < 0.6, user: iss(dice.one(names)) },
    },
  }),
  "service-grant-approved": grant,
  "service-grant-revoked": grant,
  "access-review-approved": review,
  "access-review-revoked": review,
  "key-transition": (dice) =>
    dice.next() < 0.3 ? {} : { payload: { next: dice.one([["k1", "k2"], ["k2", "k3"]]), not_before: 1_800_000_000 } },
}

/** An event of a kind about this project. */
export const eventOf = (
  dice: Dice,
  kind: LifecycleEventKind,
  { institution, project }: { readonly institution: InstitutionId; readonly project: ProjectId },
): NewLifecycleEvent => {
  const [issuer, subject] = dice.one(names)
  const about = lifecycleEventKinds[kind].about
  return {
    kind,
    projectId: project,
    institutionId: institution,
    ...(about === "project" ? {} : { person: { id: PersonId.make(dice.one(["p1", "p2"])), issuer, subject } }),
    ...saying[kind](dice),
    initiatedBy: dice.one(["admin", "user", "policy", "system"]),
  }
}

/** An event of a random kind. */
export const anyEvent = (
  dice: Dice,
  about: { readonly institution: InstitutionId; readonly project: ProjectId },
): NewLifecycleEvent => eventOf(dice, dice.one(kinds), about)
