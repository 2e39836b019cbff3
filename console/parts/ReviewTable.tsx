/** Access reviews, each with its four facts side by side: decided, delivered, acknowledged, in effect. */
import type { ComponentChildren, JSX } from "preact"
import { Badge } from "./Badge.tsx"
import { type AccessReview, invalidBecause, ReviewDecisions } from "./ReviewDecisions.tsx"
import { acknowledged, decided, delivered, effective, StateBadge } from "./StateBadge.tsx"
import { Table } from "./Table.tsx"

interface Listed {
  readonly reviews: ReadonlyArray<AccessReview>
  readonly names: (id: string) => string
  readonly projects: (id: string) => string
  /** Shown where there is none. */
  readonly empty: ComponentChildren
  readonly done: () => unknown
  /** Whether each row leads to the page of its review. */
  readonly linked?: boolean
}

export const ReviewTable = ({ done, empty, linked = true, names, projects, reviews }: Listed): JSX.Element => (
  <Table
    caption="Reviews, with what was decided, delivered, acknowledged and is in effect"
    rows={reviews}
    keyOf={({ review_id }) => review_id}
    empty={empty}
    columns={[
      {
        head: "Person",
        cell: ({ access, institution_id, person_id, project_id, review_id }) => (
          <>
            <a href={`/console/institutions/${institution_id}/access/${access.access_id}`}>{names(person_id)}</a>
            <div class="note">{projects(project_id)}, version {access.version}</div>
            {linked ? <a href={`/console/institutions/${institution_id}/reviews/${review_id}`}>This review</a> : null}
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
              <span class="note">{validity.reasons.map((one) => invalidBecause[one] ?? one).join(", ")}</span>
            </>
          ),
      },
      { head: "Decide", cell: (review) => <ReviewDecisions done={done} names={names} review={review} /> },
    ]}
  />
)
