/** One access review by its own address: its four facts, what its sponsor said, and the chain of its decisions. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { Params } from "../Location.ts"
import { useNames } from "../Names.ts"
import { Failure } from "../parts/Failure.tsx"
import { Page } from "../parts/Page.tsx"
import { EvidenceChain } from "../parts/ReviewEvidence.tsx"
import { ReviewTable } from "../parts/ReviewTable.tsx"
import { useProjectNames } from "../ProjectNames.ts"
import { useResource } from "../Resource.ts"

const AccessReviewPage = ({ params }: { readonly params: Params }): JSX.Element => {
  const [institution_id, review_id] = [params["institution_id"]!, params["review_id"]!]
  const asked = { params: { institution_id, review_id } }
  const review = useResource(
    `access review ${review_id}`,
    (signal) => ask("getAccessGrantReview", asked, { signal }),
  )
  const evidence = useResource(
    `evidence ${review_id}`,
    (signal) => ask("getAccessGrantEvidence", asked, { signal }),
  )
  const found = review.value.value
  const names = useNames(found === undefined ? [] : [found.person_id, found.sponsor_decision.person_id])
  const projects = useProjectNames(institution_id, found === undefined ? [] : [found.project_id])
  const done = () => Promise.all([review.reload(), evidence.reload()])
  return (
    <Page
      title={found === undefined ? "One access review" : `Access review of ${names(found.person_id)}`}
      up={[`/console/reviews?institution=${encodeURIComponent(institution_id)}`, "Access reviews"]}
    >
      <Failure of={review.failure} retry={review.reload} />
      {found === undefined ? null : (
        <>
          <p>
            {names(found.sponsor_decision.person_id)} vouches for {names(found.person_id)}: “{found.sponsor_reason}”
          </p>
          <ReviewTable done={done} empty="" linked={false} names={names} projects={projects} reviews={[found]} />
          <section aria-labelledby="evidence">
            <h2 id="evidence">Evidence</h2>
            <Failure of={evidence.failure} retry={evidence.reload} />
            {evidence.value.value === undefined ? null : <EvidenceChain of={evidence.value.value} />}
          </section>
        </>
      )}
    </Page>
  )
}
export default AccessReviewPage
