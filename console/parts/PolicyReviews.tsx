/** A request that waits for signatures, or was decided: what it is about, what is asked for, and who signed. */
import type { JSX } from "preact"
import { useSignal } from "@preact/signals"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useNames } from "../Names.ts"
import { type SubjectNames, useSubjectNames } from "../SubjectNames.ts"
import { session } from "../Visitor.ts"
import { ApprovalPreview, isRefused, useApprovalPreview } from "./ApprovalPreview.tsx"
import { Badge, type Tone } from "./Badge.tsx"
import { DialogButton } from "./Dialog.tsx"
import { SelectField } from "./Form.tsx"
import { ReasonForm } from "./ReasonForm.tsx"
import { approvingReasons, decliningReasons } from "./ReasonTemplates.ts"
import { Signers } from "./Signers.tsx"
import { When } from "./When.tsx"

export type PolicyReview = AnswerOf<"listPolicyReviews">["items"][number]

/** As a list has it, or as the page of one review has it, with its signers. */
type Review = PolicyReview & Partial<Pick<AnswerOf<"getPolicyReview">, "signers">>

const kinds: Readonly<Record<string, string>> = {
  organization: "A new institution",
  website: "A website",
  access: "Access to a project",
  enrollment: "An invitation",
  enrollment_claim: "The use of an invitation by another person",
  launch: "A launch",
  link: "Two identities become one",
  membership: "A change of membership",
  authenticator_reset: "All authenticators of a person are removed",
  access_revocation: "An Access is revoked",
}

const states: Readonly<Record<Review["state"], readonly [tone: Tone, words: string]>> = {
  open: ["wait", "waits"],
  applied: ["good", "carried out"],
  declined: ["off", "declined"],
  superseded: ["off", "superseded"],
}

const waitsForAnother = ["wait", "signed by you, waits for another"] as const

/** The roles in which the visitor could sign, as far as the session tells; the API decides. */
const ownRoles = ({ institution_id, required_roles }: Review): ReadonlyArray<string> => {
  const one = session.value
  const held = new Set<string>(one?.institutions.find((found) => found.institution_id === institution_id)?.roles)
  if (one?.operator) held.add("operator")
  const own = required_roles.filter((role) => held.has(role))
  return own.length === 0 ? required_roles : own
}

interface Deciding {
  readonly review: Review
  readonly close: () => void
  readonly done: () => unknown
  readonly decision: "approve" | "decline"
}

const DecideForm = ({ close, decision, done, review }: Deciding): JSX.Element => {
  const roles = ownRoles(review)
  const signed = new Set(review.approvals.map(({ role }) => role))
  const role = useSignal(roles.find((one) => !signed.has(one)) ?? roles[0] ?? "")
  const approves = decision === "approve"
  const params = { review_id: review.review_id }
  const preview = useApprovalPreview({
    name: `${decision} ${review.review_id} ${role.value}`,
    asked: approves
      ? (reason, key, signal) =>
        ask("approvePolicyReview", { params, query: { dry_run: true }, payload: { reason, role: role.value } }, {
          key,
          signal,
        })
      : undefined,
  })
  return (
    <ReasonForm
      name={`${decision} ${review.review_id}`}
      close={close}
      done={done}
      kind={approves ? "main" : "stop"}
      ready={!isRefused(preview)}
      submit={approves ? `Approve as ${role.value}` : `Decline as ${role.value}`}
      templates={approves ? approvingReasons : decliningReasons}
      said={approves ? "Your approval is recorded." : "The request is declined."}
      write={(reason, key) =>
        ask(approves ? "approvePolicyReview" : "declinePolicyReview", {
          params,
          payload: { reason, role: role.value },
        }, { key })}
    >
      <p>
        {approves
          ? "The last approval that is required carries the request out."
          : "One refusal ends the request; its author may ask again."}
      </p>
      <SelectField
        label="In the role"
        value={role.value}
        onChange={(chosen) => {
          role.value = chosen
        }}
        options={roles.map((one) => [one, one] as const)}
      />
      {approves ? <ApprovalPreview of={preview} /> : null}
    </ReasonForm>
  )
}

const shown = (value: unknown): string =>
  typeof value === "string" ? value : Array.isArray(value) ? value.map(shown).join(", ") : JSON.stringify(value)

/** `owner_person_id` as `Owner`, `redirect_uris` as `Redirect uris`. */
const labelOf = (name: string): string => {
  const words = name.replace(/(_person)?_id$/, "").replaceAll("_", " ")
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** The people whom the fields of a request name. */
const peopleIn = (asked: Review["asked"]): ReadonlyArray<string> =>
  Object.entries(asked).flatMap(([name, value]) => /person_id$/.test(name) && typeof value === "string" ? [value] : [])

/** Fields that machines compare: no person decides by them at first sight. */
const technical = new Set(["preview_digest", "project_version", "proof_id"])

/** Fields that the card shows by their names, or in other words. */
const told = new Set(["reason", "institution_id", "project_id"])

interface Named {
  readonly names: (id: string) => string
  readonly subjects: SubjectNames
}

const Fields = ({ names, of }: {
  readonly of: ReadonlyArray<readonly [name: string, value: unknown]>
  readonly names: (id: string) => string
}): JSX.Element => (
  <>
    {of.map(([name, value]) => (
      <div key={name}>
        <dt>{labelOf(name)}</dt>
        <dd>{/person_id$/.test(name) ? names(shown(value)) : shown(value)}</dd>
      </div>
    ))}
  </>
)

/** The institution and the project that the request is about. */
const Subject = ({ of: { asked, institution_id, project_id }, subjects }: Pick<Named, "subjects"> & {
  readonly of: Review
}): JSX.Element => {
  const project = project_id ?? (typeof asked["project_id"] === "string" ? asked["project_id"] : null)
  return (
    <>
      {institution_id === null ? null : (
        <div>
          <dt>Institution</dt>
          <dd>
            <a href={`/console/institutions/${institution_id}`}>{subjects.institution(institution_id)}</a>
          </dd>
        </div>
      )}
      {project === null ? null : (
        <div>
          <dt>Project</dt>
          <dd>
            <a href={`/console/projects/${project}`}>{subjects.project(project)}</a>
          </dd>
        </div>
      )}
    </>
  )
}

const Asked = ({ names, of, subjects }: Named & { readonly of: Review }): JSX.Element => {
  const fields = Object.entries(of.asked).filter(([name, value]) => value !== null && !told.has(name))
  const details = fields.filter(([name]) => technical.has(name))
  return (
    <>
      <dl>
        <Subject of={of} subjects={subjects} />
        <Fields names={names} of={fields.filter(([name]) => !technical.has(name))} />
      </dl>
      {details.length === 0 ? null : (
        <details>
          <summary>Technical details</summary>
          <dl>
            <Fields names={names} of={details} />
          </dl>
        </details>
      )}
    </>
  )
}

/** What became of the signature of one role. */
const Signature = ({ names, of: { approvals, declined }, role }: {
  readonly of: Review
  readonly role: string
  readonly names: (id: string) => string
}): JSX.Element => {
  const approval = approvals.find((one) => one.role === role)
  const refusal = declined?.role === role ? declined : null
  return (
    <li class={refusal !== null ? "failed" : approval !== undefined ? "past" : ""}>
      <strong>{role}</strong> {refusal !== null
        ? (
          <>
            declined by {names(refusal.person_id)}, <When at={refusal.declined_at} />: “{refusal.reason}”
          </>
        )
        : approval !== undefined
        ? (
          <>
            signed by {names(approval.person_id)}, <When at={approval.approved_at} />
          </>
        )
        : <span class="note">has not signed</span>}
    </li>
  )
}

const Signatures = ({ names, of }: { readonly of: Review; readonly names: (id: string) => string }): JSX.Element => (
  <ul class="steps">
    {of.required_roles.map((role, n) => <Signature key={`${role} ${n}`} names={names} of={of} role={role} />)}
  </ul>
)

const Card = ({ done, names, review, subjects }: Named & {
  readonly review: Review
  readonly done: () => unknown
}): JSX.Element => {
  const waits = review.state === "open"
  const me = session.value?.person?.person_id
  const signed = review.approvals.some(({ person_id }) => person_id === me)
  const [tone, words] = waits && signed ? waitsForAnother : states[review.state]
  return (
    <section class="card" aria-labelledby={review.review_id}>
      <div class="head">
        <h2 id={review.review_id}>
          <a href={`/console/decide/${review.review_id}`}>{kinds[review.kind] ?? labelOf(review.kind)}</a>
        </h2>
        <Badge tone={tone}>{words}</Badge>
      </div>
      <p>
        {names(review.author_person_id)} asked <When at={review.created_at} />: “{review.reason}”
      </p>
      <Asked names={names} of={review} subjects={subjects} />
      <Signatures of={review} names={names} />
      {review.signers == null ? null : <Signers of={review.signers} names={names} />}
      {!waits || signed ? null : (
        <div class="actions">
          <DialogButton name={`approve ${review.review_id}`} kind="main" label="Approve…" title="Approve the request">
            {(close) => <DecideForm close={close} decision="approve" done={done} review={review} />}
          </DialogButton>
          <DialogButton name={`decline ${review.review_id}`} label="Decline…" title="Decline the request">
            {(close) => <DecideForm close={close} decision="decline" done={done} review={review} />}
          </DialogButton>
        </div>
      )}
    </section>
  )
}

/** The cards of these reviews, with the names of the people and things that they are about. */
export const PolicyReviews = ({ done, of }: {
  readonly of: ReadonlyArray<Review>
  readonly done: () => unknown
}): JSX.Element => {
  const names = useNames(
    of.flatMap(({ approvals, asked, author_person_id, declined, signers }) => [
      author_person_id,
      ...approvals.map((one) => one.person_id),
      ...declined === null ? [] : [declined.person_id],
      ...(signers?.people ?? []).map((one) => one.person_id),
      ...peopleIn(asked),
    ]),
  )
  const subjects = useSubjectNames(of)
  return (
    <>
      {of.map((review) => (
        <Card
          key={review.review_id}
          done={done}
          names={names}
          review={review}
          subjects={subjects}
        />
      ))}
    </>
  )
}
