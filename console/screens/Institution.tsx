/** One institution: its members, invitations, websites, and who has Access to what. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { go, type Params } from "../Location.ts"
import { AskAccess } from "../parts/AskAccess.tsx"
import { Badge } from "../parts/Badge.tsx"
import { EvidenceDownload } from "../parts/EvidenceDownload.tsx"
import { Failure } from "../parts/Failure.tsx"
import { Page } from "../parts/Page.tsx"
import { When } from "../parts/When.tsx"
import { useResource } from "../Resource.ts"
import { auditing, session } from "../Visitor.ts"
import { AccessList } from "./Institution/AccessList.tsx"
import { Invitations } from "./Institution/Invitations.tsx"
import { Members } from "./Institution/Members.tsx"
import { Websites } from "./Institution/Websites.tsx"

type OneInstitution = AnswerOf<"getInstitution">

const Facts = ({ of }: { readonly of: OneInstitution }): JSX.Element => (
  <dl>
    <div>
      <dt>State</dt>
      <dd>
        <Badge tone={of.status === "active" ? "good" : "warn"}>{of.status}</Badge>
      </dd>
    </div>
    <div>
      <dt>Verified domains</dt>
      <dd>{of.verified_domains.length === 0 ? "none" : of.verified_domains.join(", ")}</dd>
    </div>
    <div>
      <dt>Your roles</dt>
      <dd>{of.memberships.map(({ role }) => role).join(", ") || "none"}</dd>
    </div>
    <div>
      <dt>Since</dt>
      <dd>
        <When at={of.created_at} exact />
      </dd>
    </div>
    <div>
      <dt>Id</dt>
      <dd>
        <code>{of.institution_id}</code>
      </dd>
    </div>
  </dl>
)

/** The parts that a Sponsor, an effective administrator and an operator read; some of them also an auditor. */
const Decided = ({ of }: { readonly of: OneInstitution }): JSX.Element => {
  const decides = of.memberships.some(({ effective, role }) => effective && role !== "member")
  if (!decides && session.value?.operator !== true && !auditing.value) {
    return (
      <p class="note">
        Members, invitations, websites and Access are shown to Sponsors and administrators of the institution.
      </p>
    )
  }
  const shown = { institution: of.institution_id, decides }
  return (
    <>
      <Members {...shown} />
      {auditing.value ? null : (
        <>
          <Invitations {...shown} />
          <Websites {...shown} />
        </>
      )}
      <AccessList {...shown} />
      {decides || auditing.value
        ? (
          <section aria-labelledby="evidence">
            <h2 id="evidence">Evidence</h2>
            <p class="note">
              Every Access, request and review here with each decision's proof, in one signed file that an auditor
              verifies without this installation.
            </p>
            <EvidenceDownload
              asked={{ institution_id: of.institution_id }}
              label="Download the evidence"
              name={`evidence-${of.institution_id}`}
            />
          </section>
        )
        : null}
    </>
  )
}

const Institution = ({ params }: { readonly params: Params }): JSX.Element => {
  const institution_id = params["institution_id"]!
  const institution = useResource(
    `institution ${institution_id}`,
    (signal) => ask("getInstitution", { params: { institution_id } }, { signal }),
  )
  const found = institution.value.value
  return (
    <Page
      title={found?.name ?? "Institution"}
      up={["/console/institutions", "Institutions"]}
      actions={found?.memberships.some(({ effective }) => effective) === true
        ? <AskAccess institution={institution_id} done={() => go("/console/requests")} />
        : null}
    >
      <Failure of={institution.failure} retry={institution.reload} />
      {found === undefined ? null : (
        <>
          <Facts of={found} />
          <Decided of={found} />
        </>
      )}
    </Page>
  )
}
export default Institution
