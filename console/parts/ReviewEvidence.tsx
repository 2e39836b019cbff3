/** The evidence of one review: who decided what, when and why, and the chain of digests; kept as a file for an audit. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useNames } from "../Names.ts"
import { useResource } from "../Resource.ts"
import { Badge } from "./Badge.tsx"
import { DialogButton } from "./Dialog.tsx"
import { EvidenceDownload } from "./EvidenceDownload.tsx"
import { Failure } from "./Failure.tsx"
import { saveCsv, saveFile } from "./SaveFile.ts"
import { When } from "./When.tsx"

interface Reviewed {
  readonly institution_id: string
  readonly review_id: string
}

type Found = AnswerOf<"getAccessGrantEvidence">

const done = { propose: "proposed it", approve: "approved it", revoke: "revoked it" } as const

/** Each decision with its reason and digest, oldest first, and whether the chain holds. */
export const EvidenceChain = ({ of }: { readonly of: Found }): JSX.Element => {
  const names = useNames(of.entries.map(({ person_id }) => person_id))
  return (
    <>
      <p>
        {of.whole
          ? <Badge tone="good">the chain holds</Badge>
          : <Badge tone="bad">the chain does not hold: an entry is not as it was recorded</Badge>}
      </p>
      <ol class="steps">
        {of.entries.map(({ action, at, digest, person_id, reason, receipt_id }) => (
          <li key={receipt_id}>
            {names(person_id)} {done[action]} <When at={at} exact />
            <div>“{reason}”</div>
            <div class="note">
              <code>{digest}</code>
            </div>
          </li>
        ))}
      </ol>
    </>
  )
}

const Evidence = ({ close, institution_id, review_id }: Reviewed & { readonly close: () => void }): JSX.Element => {
  const evidence = useResource(
    `evidence ${review_id}`,
    (signal) => ask("getAccessGrantEvidence", { params: { institution_id, review_id } }, { signal }),
  )
  const found = evidence.value.value
  const name = `review-${review_id}`
  return (
    <>
      <Failure of={evidence.failure} retry={evidence.reload} />
      {found === undefined ? null : <EvidenceChain of={found} />}
      <div class="actions">
        {found === undefined ? null : (
          <>
            <button
              type="button"
              onClick={() => saveFile(`${name}.json`, "application/json", `${JSON.stringify(found, null, 2)}\n`)}
            >
              Download as JSON
            </button>
            <button
              type="button"
              onClick={() =>
                saveCsv(name, found.entries.map((entry) => ({ review_id, access: found.access, ...entry })))}
            >
              Download as CSV
            </button>
            <EvidenceDownload asked={{ institution_id, review_id }} label="Download with proofs, signed" name={name} />
          </>
        )}
        <button type="button" onClick={close}>Close</button>
      </div>
    </>
  )
}

export const ReviewEvidence = ({ institution_id, review_id }: Reviewed): JSX.Element => (
  <DialogButton name={`evidence ${review_id}`} label="Evidence…" title="The evidence of the review" reads>
    {(close) => <Evidence close={close} institution_id={institution_id} review_id={review_id} />}
  </DialogButton>
)
