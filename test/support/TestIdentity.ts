/**
 * A database with the directory of all kinds, and functions that put objects through it and return ids. Such objects
 * have no provenance, as with the feed, so these people are independent of each other.
 */
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { AccessId, InstitutionId, PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import type { IdentityKindName } from "../../schemas/bus/DirectoryMessages.ts"
import type * as Feed from "../../schemas/identity/IdentityDirectory.ts"
import { AccessVersions } from "../../services/access/AccessVersions.ts"
import { mailKinds } from "../../services/accounts/MailKinds.ts"
import { Directory } from "../../services/directory/Directory.ts"
import { EventLog } from "../../services/lifecycle/EventLog.ts"
import { identityKinds } from "../../src/IdentityKinds.ts"
import { PersonEventFanout } from "../../services/people/PersonEventFanout.ts"
import type { FanoutLimits } from "../../services/people/PersonAudience.ts"
import { Jobs } from "../../services/platform/messaging/Jobs.ts"
import { ground } from "./TestAccounts.ts"

/** The issuer of people, by default. */
export const issuer = "https://id.example"

/** `identity`, with this many projects told of a person's events at a time. */
export const identityTelling = (limits?: FanoutLimits) =>
  Directory.layer(Effect.zipWith(mailKinds, identityKinds, (mail, identity) => [...mail, ...identity])).pipe(
    Layer.provideMerge(Layer.merge(AccessVersions.layer, PersonEventFanout.layer(limits))),
    Layer.provideMerge(Layer.merge(EventLog.layer, Jobs.layer)),
    Layer.provideMerge(ground),
  )

/**
 * Database, bus, outbox, mails, audit (as `TestAccounts.ground`), Jobs, Positions, AccessVersions, PersonNews and the
 * directory of mail and identity kinds.
 */
export const identity = identityTelling()

type Fields<S extends { readonly Type: unknown }> = Partial<S["Type"]> & {
  readonly id?: string
  /** The feed's version of the line; 1 by default. */
  readonly version?: number
}

const fresh = () => randomUUID()

/** Puts one line through the directory; a line that is not applied is a defect. */
export const tell = Effect.fnUntraced(function* (kind: IdentityKindName, line: Record<string, unknown>) {
  const [result] = yield* (yield* Directory).apply([JSON.stringify({ kind, ...line })])
  // A decision made here outvotes the line, which is reported and no fault of the line.
  const outvoted = result?._tag === "ignored" && result.because !== null
  if (result!._tag !== "applied" && !outvoted) return yield* Effect.die(new Error(`${kind}: ${JSON.stringify(result)}`))
  return String(line["id"])
})

/** An active person of `issuer`, whose subject is its id. */
export const person = (fields: Fields<typeof Feed.PersonFields> = {}) => {
  const { id = fresh(), version = 1, ...rest } = fields
  const told = tell("person", {
    id,
    version,
    issuer,
    subject: id,
    display_name: "Somebody",
    status: "active",
    email: `${id}@example.com`,
    email_verified: true,
    ...rest,
  })
  return Effect.map(told, (id) => PersonId.make(id))
}

export const institution = (fields: Fields<typeof Feed.InstitutionFields> = {}) => {
  const { id = fresh(), version = 1, ...rest } = fields
  const told = tell("institution", {
    id,
    version,
    name: "Fern",
    verified_domains: ["fern.example"],
    status: "active",
    ...rest,
  })
  return Effect.map(told, (id) => InstitutionId.make(id))
}

/** An active membership that was accepted long ago. */
export const member = (
  institution: InstitutionId,
  person: PersonId,
  role: Feed.MembershipRole,
  fields: Fields<typeof Feed.InstitutionMembershipFields> = {},
) => {
  const { id = fresh(), version = 1, ...rest } = fields
  return tell("institution_membership", {
    id,
    version,
    institution_id: institution,
    person_id: person,
    role,
    state: "active",
    accepted_at: "2001-01-01T00:00:00Z",
    effective_from: null,
    expires_at: null,
    ...rest,
  })
}

/** A launched production project with a website of its own. */
export const project = (institution: InstitutionId, fields: Fields<typeof Feed.ProjectFields> = {}) => {
  const { id = fresh(), version = 1, ...rest } = fields
  const told = tell("project", {
    id,
    version,
    institution_id: institution,
    name: "Portal",
    website: `https://${id}.example`,
    environment: "production",
    connector_kind: "standard_oidc",
    state: "launched",
    redirect_uris: [`https://${id}.example/callback`],
    ...rest,
  })
  return Effect.map(told, (id) => ProjectId.make(id))
}

/** An active owner. */
export const owner = (project: ProjectId, person: PersonId, fields: Fields<typeof Feed.ProjectOwnerFields> = {}) => {
  const { id = fresh(), version = 1, ...rest } = fields
  return tell("project_owner", { id, version, project_id: project, person_id: person, active: true, ...rest })
}

/** An active Access as `user`; returns its id. */
export const access = (
  institution: InstitutionId,
  project: ProjectId,
  person: PersonId,
  fields: Fields<typeof Feed.AccessFields> = {},
) => {
  const { id = fresh(), version = 1, ...rest } = fields
  const told = tell("access", {
    id,
    version,
    institution_id: institution,
    project_id: project,
    person_id: person,
    role: "user",
    state: "active",
    ...rest,
  })
  return Effect.map(told, (id) => AccessId.make(id))
}

/** Sets the version that the product of a project runs. */
export const link = (project: ProjectId, installed_version: string, version = 1) =>
  tell("project_link", { id: project, version, project_id: project, installed_version })
