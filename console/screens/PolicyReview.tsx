/** One request that waits for signatures, or was decided: the page that mails lead to. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { Params } from "../Location.ts"
import { Failure } from "../parts/Failure.tsx"
import { Page } from "../parts/Page.tsx"
import { PolicyReviews } from "../parts/PolicyReviews.tsx"
import { useResource } from "../Resource.ts"

const PolicyReviewPage = ({ params }: { readonly params: Params }): JSX.Element => {
  const review_id = params["review_id"]!
  const review = useResource(
    `policy review ${review_id}`,
    (signal) => ask("getPolicyReview", { params: { review_id } }, { signal }),
  )
  const found = review.value.value
  return (
    <Page title="One request" up={["/console/decide", "To decide"]}>
      <Failure of={review.failure} retry={review.reload} />
      {found === undefined ? null : <PolicyReviews done={review.reload} of={[found]} />}
    </Page>
  )
}
export default PolicyReviewPage
