/**
 * Access reviews of an institution: per review its four facts, kept apart (decided, delivered, acknowledged, in effect),
 * whether it still counts, and the Access that could be proposed.
 */
import type { JSX } from "preact"
import { useEffect } from "preact/hooks"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { setQuery } from "../Location.ts"
import { useNames } from "../Names.ts"
import { ApprovalPreview, isRefused, useApprovalPreview } from "../parts/ApprovalPreview.tsx"
import { Badge } from "../parts/Badge.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { DownloadButton } from "../parts/DownloadButton.tsx"
import { acknowledged, decided, delivered, effective, StateBadge } from "../parts/StateBadge.tsx"
import { ExportButton, exportSize } from "../parts/ExportButton.tsx"
import { Failure } from "../parts/Failure.tsx"
import { SelectField } from "../parts/Form.tsx"
import { emptyPage, lastOf, NextPage, pageSize } from "../parts/NextPage.tsx"
import { Page } from "../parts/Page.tsx"
import { ReviewEvidence } from "../parts/ReviewEvidence.tsx"
import { ReasonForm } from "../parts/ReasonForm.tsx"
import { Table } from "../parts/Table.tsx"
import { filterOf } from "../parts/TextFilter.tsx"
import { When } from "../parts/When.tsx"
import { ProjectName } from "../parts/ProjectName.tsx"
import { useProjectNames } from "../ProjectNames.ts"
import { useResource } from "../Resource.ts"
import { auditing, rolesIn, session } from "../Visitor.ts"

/** Where the pages of the two lists stand in the address. */
const reviewsAfter = "reviews"
const candidatesAfter = "candidates"

type List = AnswerOf<"listAccessGrantReviews">
type Review = List["reviews"][number]
type Candidate = List["candidates"][number]
type Name = (id: string) => string

const reasons: Readonly<Record<string, string>> = {
  access_version_superseded: "the Access has a newer version",
  access_not_active: "the Access is not active",
  sponsor_not_current: "its sponsor is no sponsor any more",
  membership_ended: "a membership has ended",
  review_expired: "it has expired",
  review_revoked: "it was revoked",
}

interface Opened {
  readonly close: () => void
  readonly done: () => unknown
}

/** Approves or revokes exactly the evidence that is on screen (`If-Match`). */
const DecisionForm = ({ close, decision, done, names, review }: Opened & {
  readonly review: Review
  readonly decision: "approve" | "revoke"
  readonly names: Name
}): JSX.Element => {
  const action = useAction()
  const approves = decision === "approve"
  const { institution_id, review_id } = review
  const moved = action.failure.value?.code === "precondition_failed"
  const asked = { params: { institution_id, review_id }, headers: { "if-match": `"${review.evidence_digest}"` } }
  const preview = useApprovalPreview({
    name: `${decision} ${review_id} ${review.evidence_digest}`,
    asked: approves
      ? (reason, key, signal) =>
        ask("approveAccessGrantReview", { ...asked, query: { dry_run: true }, payload: { reason } }, { key, signal })
      : undefined,
  })
  // The list is asked for anew when the dialog closes: before that, it would take the dialog and its words away.
  useEffect(() => moved ? () => void done() : undefined, [moved])
  return (
    <ReasonForm
      action={action}
      name={`${decision} ${review_id} ${review.evidence_digest}`}
      close={close}
      done={done}
      kind={approves ? "main" : "stop"}
      ready={!moved && !isRefused(preview)}
      submit={approves ? "Approve" : "Revoke"}
      said={approves ? "The review is approved." : "The review is revoked."}
      write={(reason, key) =>
        ask(approves ? "approveAccessGrantReview" : "revokeAccessGrantReview", {
          ...asked,
          payload: { reason },
        }, { key })}
    >
      <p>
        {names(review.sponsor_decision.person_id)} vouches for {names(review.person_id)}: “{review.sponsor_reason}”
      </p>
      {moved
        ? (
          <p class="fault">
            The review has changed since you opened this. Close it, look at the review again, then decide.
          </p>
        )
        : (
          <p class="note">
            {approves ? "You approve exactly this evidence:" : "What ends is the authority of this evidence:"}{" "}
            <code>{review.evidence_digest.slice(0, 23)}…</code>
          </p>
        )}
      {moved || !approves ? null : <ApprovalPreview of={preview} />}
    </ReasonForm>
  )
}

const ProposeForm = ({ candidate, close, done, institution, names }: Opened & {
  readonly institution: string
  readonly candidate: Candidate
  readonly names: Name
}): JSX.Element => {
  const { access_id, access_version } = candidate
  return (
    <ReasonForm
      name={`propose ${access_id} ${access_version}`}
      close={close}
      done={done}
      submit="Propose the review"
      said="The review is proposed. An administrator decides."
      write={(reason, key) =>
        ask("proposeAccessGrantReview", {
          params: { institution_id: institution },
          payload: { access_id, access_version, grant_event_id: candidate.grant_event_id, reason },
        }, { key })}
    >
      <p>
        You vouch that {names(candidate.person_id)} needs the role {candidate.role}, version {access_version}.
      </p>
    </ReasonForm>
  )
}

/** The visitor's actions on a review, by their roles and by its proposer; the API decides. */
const partIn = ({ institution_id, sponsor_decision, state }: Review) => {
  const roles = rolesIn(institution_id)
  const administrator = roles.has("administrator")
  const proposer = sponsor_decision.person_id === session.value?.person?.person_id
  return {
    approves: state === "proposed" && administrator && !proposer,
    revokes: state !== "revoked" && (administrator || (state === "proposed" && proposer && roles.has("sponsor"))),
    waitsFor: state !== "proposed" ? null : administrator && proposer ? "another administrator" : "an administrator",
  }
}

/** Why an approval would be refused, as far as the list tells. */
const refusalOf = ({ validity }: Review): string | null => {
  const found = validity.reasons.find((one) => one === "review_expired" || one === "access_version_superseded")
  return found === undefined ? null : `It cannot be approved: ${reasons[found]}.`
}

const Decisions = ({ done, names, review }: {
  readonly review: Review
  readonly names: Name
  readonly done: () => unknown
}): JSX.Element => {
  const { review_id, state } = review
  const { approves, revokes, waitsFor } = partIn(review)
  return (
    <div class="actions">
      {approves
        ? (
          <DialogButton
            name={`approve ${review_id}`}
            kind="main"
            label="Approve…"
            title="Approve the review"
            refused={refusalOf(review)}
          >
            {(close) => <DecisionForm close={close} decision="approve" done={done} names={names} review={review} />}
          </DialogButton>
        )
        : waitsFor === null
        ? null
        : <span class="note">waits for {waitsFor}</span>}
      {revokes
        ? (
          <DialogButton name={`revoke ${review_id}`} label="Revoke…" title="Revoke the review">
            {(close) => <DecisionForm close={close} decision="revoke" done={done} names={names} review={review} />}
          </DialogButton>
        )
        : null}
      {revokes || waitsFor !== null
        ? null
        : <span class="note">{state === "approved" ? "an administrator may revoke it" : "has ended"}</span>}
      <ReviewEvidence institution_id={review.institution_id} review_id={review_id} />
    </div>
  )
}

interface Listed {
  readonly list: List
  readonly names: Name
  readonly projects: Name
  readonly done: () => unknown
}

const ReviewTable = ({ done, list, names, projects }: Listed): JSX.Element => (
  <Table
    caption="Reviews, with what was decided, delivered, acknowledged and is in effect"
    rows={list.reviews}
    keyOf={({ review_id }) => review_id}
    empty={emptyPage(reviewsAfter, "No Access was reviewed yet.")}
    columns={[
      {
        head: "Person",
        cell: ({ access, institution_id, person_id, project_id }) => (
          <>
            <a href={`/console/institutions/${institution_id}/access/${access.access_id}`}>{names(person_id)}</a>
            <div class="note">{projects(project_id)}, version {access.version}</div>
          </>
        ),
      },
      { head: "Decided", cell: ({ decision }) => <StateBadge of={decision.state} states={decided} at={decision.at} /> },
      {
        head: "Delivered",
        cell: ({ delivery }) => <StateBadge of={delivery.state} states={delivered} at={delivery.last_attempt_at} />,
      },
      {
        head: "Acknowledged",
        cell: ({ acknowledgement }) => (
          <StateBadge of={acknowledgement.state} states={acknowledged} at={acknowledgement.acknowledged_at} />
        ),
      },
      {
        head: "In effect",
        cell: ({ effective_access: { drift, observed_at, state } }) => (
          <>
            <StateBadge of={state} states={effective} at={observed_at} />
            {drift ? <Badge tone="bad">drift</Badge> : null}
          </>
        ),
      },
      {
        head: "Valid",
        cell: ({ validity }) =>
          validity.current ? <Badge tone="good">yes</Badge> : (
            <>
              <Badge tone="off">no</Badge>{" "}
              <span class="note">{validity.reasons.map((one) => reasons[one] ?? one).join(", ")}</span>
            </>
          ),
      },
      { head: "Decide", cell: (review) => <Decisions done={done} names={names} review={review} /> },
    ]}
  />
)

const CandidateTable = ({ done, list, names, projects }: Listed): JSX.Element => (
  <Table
    caption="Access that no review covers"
    rows={list.candidates}
    keyOf={({ access_id }) => access_id}
    empty={emptyPage(candidatesAfter, "Every active Access has a review.")}
    columns={[
      { head: "Person", cell: ({ person_id }) => names(person_id) },
      { head: "Role", cell: ({ role }) => role },
      { head: "Version", cell: ({ access_version }) => access_version },
      { head: "Granted", cell: ({ granted_at }) => <When at={granted_at} /> },
      {
        head: "Project",
        cell: ({ project_id }) => <ProjectName id={project_id} name={projects(project_id)} />,
      },
      {
        head: "Review",
        cell: (candidate) =>
          candidate.proposable
            ? (
              <DialogButton
                name={`propose ${candidate.access_id}`}
                label="Propose…"
                title="Propose a review of this Access"
              >
                {(close) => (
                  <ProposeForm
                    candidate={candidate}
                    close={close}
                    done={done}
                    institution={list.institution_id}
                    names={names}
                  />
                )}
              </DialogButton>
            )
            : <span class="note">{candidate.blocked_by.map((code) => code.replaceAll("_", " ")).join(", ")}</span>,
      },
    ]}
  />
)

const peopleOf = ({ candidates, reviews }: List): ReadonlyArray<string> => [
  ...reviews.flatMap(({ person_id, sponsor_decision }) => [person_id, sponsor_decision.person_id]),
  ...candidates.map(({ person_id }) => person_id),
]

const projectsOf = ({ candidates, reviews }: List): ReadonlyArray<string> =>
  [...reviews, ...candidates].map(({ project_id }) => project_id)

/** All reviews of an institution, as evidence. */
const exported = (institution_id: string) => () => async (after_id: string | undefined, signal: AbortSignal) => {
  const query = { limit: String(exportSize), ...(after_id === undefined ? {} : { after_id }) }
  const { reviews } = await ask("listAccessGrantReviews", { params: { institution_id }, query }, { signal })
  return { items: reviews, next_after_id: reviews.length < exportSize ? null : reviews.at(-1)!.review_id }
}

/** An auditor comes by an institution's page, which names it. */
const AccessReviews = (): JSX.Element =>
  auditing.value && filterOf("institution") === undefined
    ? (
      <Page title="Access reviews">
        <p>
          <a href="/console/institutions">Choose an institution</a>, and go on to the reviews of its Access.
        </p>
      </Page>
    )
    : <Reviews />

const Reviews = (): JSX.Element => {
  const deciding = session.value!.institutions.filter(({ roles }) => roles.some((role) => role !== "member"))
  const institution_id = filterOf("institution") ?? deciding[0]?.institution_id ?? ""
  const [after, afterAccess] = [filterOf(reviewsAfter), filterOf(candidatesAfter)]
  const reviews = useResource(
    `access reviews ${institution_id} ${after} ${afterAccess}`,
    (signal) =>
      ask("listAccessGrantReviews", {
        params: { institution_id },
        query: {
          limit: String(pageSize),
          ...(after === undefined ? {} : { after_id: after }),
          ...(afterAccess === undefined ? {} : { after_access_id: afterAccess }),
        },
      }, { signal }),
  )
  const list = reviews.value.value
  const projects = useProjectNames(institution_id, list === undefined ? [] : projectsOf(list))
  const names = useNames(list === undefined ? [] : peopleOf(list))
  return (
    <Page
      title="Access reviews"
      actions={list === undefined
        ? undefined
        : <DownloadButton items={list.reviews} label="Download the evidence" name="access-reviews" />}
    >
      {deciding.length < 2 ? null : (
        <div class="filters">
          <SelectField
            label="Institution"
            value={institution_id}
            onChange={(institution) =>
              setQuery({ institution, [reviewsAfter]: undefined, [candidatesAfter]: undefined })}
            options={deciding.map(({ institution_id, name }) => [institution_id, name ?? institution_id] as const)}
          />
        </div>
      )}
      <Failure of={reviews.failure} retry={reviews.reload} />
      {list === undefined ? null : (
        <>
          <ReviewTable done={reviews.reload} list={list} names={names} projects={projects} />
          <NextPage last={lastOf(list.reviews, ({ review_id }) => review_id)} name={reviewsAfter} words="reviews" />
          <div class="actions">
            <ExportButton begin={exported(institution_id)} label="Download all as CSV" name="all-access-reviews" />
          </div>
          <section aria-labelledby="candidates">
            <h2 id="candidates">Access without a review</h2>
            <CandidateTable done={reviews.reload} list={list} names={names} projects={projects} />
            <NextPage
              last={lastOf(list.candidates, ({ access_id }) => access_id)}
              name={candidatesAfter}
              words="Access without a review"
            />
          </section>
          <p class="note">
            As of <When at={list.as_of} exact />
          </p>
        </>
      )}
    </Page>
  )
}
export default AccessReviews
