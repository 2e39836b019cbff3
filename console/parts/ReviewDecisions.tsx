/** What the visitor may do with an access review: approve or revoke exactly the evidence that is on screen. */
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useNames } from "../Names.ts"
import { useResource } from "../Resource.ts"
import { rolesIn, session } from "../Visitor.ts"
import { ApprovalPreview, isRefused, useApprovalPreview } from "./ApprovalPreview.tsx"
import { DialogButton } from "./Dialog.tsx"
import type { Facts } from "./Difference.tsx"
import { Moved, useMoved } from "./Moved.tsx"
import { ReasonForm } from "./ReasonForm.tsx"
import { approvingReasons, endingReasons } from "./ReasonTemplates.ts"
import { ReviewEvidence } from "./ReviewEvidence.tsx"

export type AccessReview = AnswerOf<"getAccessGrantReview">
type Review = AccessReview
type Name = (id: string) => string

/** Why a review no longer counts, in words. */
export const invalidBecause: Readonly<Record<string, string>> = {
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

/** What a decider compares, in words. */
const factsOf = ({ decision, evidence_digest, state, validity }: Review): Facts => ({
  State: state,
  Decided: decision.at,
  Valid: validity.current ? "yes" : validity.reasons.map((one) => invalidBecause[one] ?? one).join(", "),
  Evidence: `${evidence_digest.slice(0, 23)}…`,
})

/** The last decision on the review, which another person made first. */
const LastWord = ({ review: { institution_id, review_id } }: { readonly review: Review }): JSX.Element | null => {
  const evidence = useResource(
    `evidence now ${review_id}`,
    (signal) => ask("getAccessGrantEvidence", { params: { institution_id, review_id } }, { signal }),
  )
  const last = evidence.value.value?.entries.at(-1)
  const names = useNames(last === undefined ? [] : [last.person_id])
  return last === undefined ? null : <p>{names(last.person_id)} wrote: “{last.reason}”</p>
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
  const moved = useMoved(action, ["precondition_failed"], done)
  const asked = { params: { institution_id, review_id }, headers: { "if-match": `"${review.evidence_digest}"` } }
  const preview = useApprovalPreview({
    name: `${decision} ${review_id} ${review.evidence_digest}`,
    asked: approves
      ? (reason, key, signal) =>
        ask("approveAccessGrantReview", { ...asked, query: { dry_run: true }, payload: { reason } }, { key, signal })
      : undefined,
  })
  return (
    <ReasonForm
      action={action}
      name={`${decision} ${review_id} ${review.evidence_digest}`}
      close={close}
      done={done}
      kind={approves ? "main" : "stop"}
      ready={!moved && !isRefused(preview)}
      submit={approves ? "Approve" : "Revoke"}
      templates={approves ? approvingReasons : endingReasons}
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
          <Moved
            thing="review"
            before={review}
            version={review.evidence_digest}
            facts={factsOf}
            read={(signal) => ask("getAccessGrantReview", { params: { institution_id, review_id } }, { signal })}
          >
            <LastWord review={review} />
          </Moved>
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
  return found === undefined ? null : `It cannot be approved: ${invalidBecause[found]}.`
}

export const ReviewDecisions = ({ done, names, review }: {
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
