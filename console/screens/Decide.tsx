/** To decide: the requests that wait for a signature of the visitor. */
import type { JSX } from "preact"
import { useSignal } from "@preact/signals"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { setQuery } from "../Location.ts"
import { useNames } from "../Names.ts"
import { Badge, type Tone } from "../parts/Badge.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { Failure } from "../parts/Failure.tsx"
import { SelectField } from "../parts/Form.tsx"
import { Page } from "../parts/Page.tsx"
import { ReasonForm } from "../parts/ReasonForm.tsx"
import { filterOf, pageAfter } from "../parts/TextFilter.tsx"
import { When } from "../parts/When.tsx"
import { useResource } from "../Resource.ts"
import { session } from "../Visitor.ts"

type OwnInstitution = AnswerOf<"consoleSession">["institutions"][number]
type Review = AnswerOf<"listPolicyReviews">["items"][number]

const kinds: Readonly<Record<string, string>> = {
  organization: "A new institution",
  website: "A website",
  access: "Access to a project",
  enrollment: "An invitation",
  launch: "A launch",
  link: "Two identities become one",
  membership: "A change of membership",
}

const states: Readonly<Record<Review["state"], readonly [tone: Tone, words: string]>> = {
  open: ["wait", "waits"],
  applied: ["good", "carried out"],
  declined: ["off", "declined"],
  superseded: ["off", "superseded"],
}

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
  return (
    <ReasonForm
      name={`${decision} ${review.review_id}`}
      close={close}
      done={done}
      kind={approves ? "main" : "stop"}
      submit={approves ? `Approve as ${role.value}` : `Decline as ${role.value}`}
      said={approves ? "Your approval is recorded." : "The request is declined."}
      write={(reason, key) =>
        ask(approves ? "approvePolicyReview" : "declinePolicyReview", {
          params: { review_id: review.review_id },
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

const Value = ({ name, names, of }: {
  readonly name: string
  readonly of: unknown
  readonly names: (id: string) => string
}): JSX.Element => {
  if (/person_id$/.test(name)) return <>{names(shown(of))}</>
  if (name === "project_id") {
    return (
      <a href={`/console/projects/${shown(of)}`}>
        <code>{shown(of)}</code>
      </a>
    )
  }
  return <>{shown(of)}</>
}

const Asked = ({ names, of }: {
  readonly of: Review["asked"]
  readonly names: (id: string) => string
}): JSX.Element => (
  <dl>
    {Object.entries(of).filter(([name, value]) => value !== null && name !== "reason").map(([name, value]) => (
      <div key={name}>
        <dt>{labelOf(name)}</dt>
        <dd>
          <Value name={name} names={names} of={value} />
        </dd>
      </div>
    ))}
  </dl>
)

const Signatures = ({ names, of }: { readonly of: Review; readonly names: (id: string) => string }): JSX.Element => (
  <ul class="steps">
    {of.required_roles.map((role, n) => {
      const approval = of.approvals.find((one) => one.role === role)
      return (
        <li key={`${role} ${n}`} class={approval === undefined ? "" : "past"}>
          <strong>{role}</strong> {approval === undefined ? <span class="note">has not signed</span> : (
            <>
              signed by {names(approval.person_id)}, <When at={approval.approved_at} />
            </>
          )}
        </li>
      )
    })}
  </ul>
)

const Card = ({ done, names, review }: {
  readonly review: Review
  readonly names: (id: string) => string
  readonly done: () => unknown
}): JSX.Element => {
  const [tone, words] = states[review.state]
  return (
    <section class="card" aria-labelledby={review.review_id}>
      <div class="head">
        <h2 id={review.review_id}>{kinds[review.kind] ?? labelOf(review.kind)}</h2>
        <Badge tone={tone}>{words}</Badge>
      </div>
      <p>
        {names(review.author_person_id)} asked <When at={review.created_at} />: “{review.reason}”
      </p>
      <Asked names={names} of={review.asked} />
      <Signatures of={review} names={names} />
      {review.state !== "open" ? null : (
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

/** The access reviews of an institution that wait for the visitor: they are decided on a page of their own. */
const WaitingReviews = (
  { of: { institution_id, name, roles } }: { readonly of: OwnInstitution },
): JSX.Element | null => {
  const reviews = useResource(
    `access reviews ${institution_id}`,
    (signal) => ask("listAccessGrantReviews", { params: { institution_id } }, { signal }),
  )
  const found = reviews.value.value
  if (found === undefined) return <Failure of={reviews.failure} retry={reviews.reload} />
  const me = session.value?.person?.person_id
  const waiting =
    found.reviews.filter(({ sponsor_decision, state, validity }) =>
      state === "proposed" && validity.current && sponsor_decision.person_id !== me
    ).length
  const unreviewed = found.candidates.filter(({ proposable }) => proposable).length
  const lines = [
    roles.includes("administrator") && waiting > 0
      ? waiting === 1
        ? "1 review waits for an administrator's approval."
        : `${waiting} reviews wait for an administrator's approval.`
      : null,
    roles.includes("sponsor") && unreviewed > 0
      ? unreviewed === 1 ? "1 Access has no review yet." : `${unreviewed} Access have no review yet.`
      : null,
  ].filter((line) => line !== null)
  if (lines.length === 0) return null
  return (
    <section class="card" aria-labelledby={`reviews-${institution_id}`}>
      <h2 id={`reviews-${institution_id}`}>Access reviews of {name ?? institution_id}</h2>
      {lines.map((line) => <p key={line}>{line}</p>)}
      <p>
        <a href={`/console/reviews?institution=${encodeURIComponent(institution_id)}`}>Look at the access reviews</a>
      </p>
    </section>
  )
}

const pageSize = 20

const Decide = (): JSX.Element => {
  const state = filterOf("state") ?? "open"
  const after_id = filterOf("after")
  const reviews = useResource(
    `policy reviews ${state} ${after_id}`,
    (signal) => ask("listPolicyReviews", { query: { state, after_id, limit: String(pageSize) } }, { signal }),
  )
  const found = reviews.value.value?.items
  const names = useNames(
    found?.flatMap(({ approvals, asked, author_person_id }) => [
      author_person_id,
      ...approvals.map((one) => one.person_id),
      ...peopleIn(asked),
    ]) ?? [],
  )
  return (
    <Page title="To decide">
      <div class="filters">
        <SelectField
          label="Show"
          value={state}
          onChange={(chosen) => setQuery({ state: chosen === "open" ? undefined : chosen, after: undefined })}
          options={[
            ["open", "What waits"],
            ["applied", "What was carried out"],
            ["declined", "What was declined"],
            ["superseded", "What was superseded"],
          ]}
        />
      </div>
      <Failure of={reviews.failure} retry={reviews.reload} />
      {found?.length === 0
        ? (
          <div class="empty">
            {state === "open"
              ? (
                <>
                  No request waits for your signature. What you asked for yourself is in{" "}
                  <a href="/console/requests">your requests</a>.
                </>
              )
              : "There is nothing here."}
          </div>
        )
        : found?.map((review) => <Card key={review.review_id} done={reviews.reload} names={names} review={review} />)}
      {state !== "open" ? null : session.value!.institutions
        .filter(({ roles }) => roles.some((role) => role !== "member"))
        .map((one) => <WaitingReviews key={one.institution_id} of={one} />)}
      {found?.length === pageSize
        ? (
          <p>
            <a href={pageAfter(found.at(-1)!.review_id)}>More</a>
          </p>
        )
        : null}
    </Page>
  )
}
export default Decide
