/** The Access that campaigns ask the visitor about, with the two answers. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useResource } from "../Resource.ts"
import { Failure } from "./Failure.tsx"
import { ReasonDialog } from "./ReasonDialog.tsx"
import { Table } from "./Table.tsx"
import { When } from "./When.tsx"

type Item = AnswerOf<"listOwnCampaignItems">["items"][number]

const shown = 50

const Answers = ({ done, of }: { readonly of: Item; readonly done: () => unknown }): JSX.Element => {
  const { campaign_id, institution_id, item_id } = of
  const who = of.display_name ?? of.person_id
  const answering = (answer: "confirm" | "propose_revocation") => (reason: string, key: string) =>
    ask("answerCampaignItem", {
      params: { institution_id, campaign_id, item_id },
      payload: { answer, reason },
    }, { key })
  return (
    <div class="actions">
      <ReasonDialog
        name={`confirm ${item_id}`}
        label="Still needed…"
        title={`Confirm the Access of ${who}`}
        submit="Confirm it"
        said="The Access is confirmed."
        done={done}
        write={answering("confirm")}
      >
        <p>You say that {who} still needs the role {of.role} of {of.project_name}.</p>
      </ReasonDialog>
      <ReasonDialog
        name={`revoke ${item_id}`}
        label="Not needed…"
        title={`Propose that the Access of ${who} is revoked`}
        submit="Propose it"
        said="The revocation is proposed. An administrator decides."
        kind="stop"
        done={done}
        write={answering("propose_revocation")}
      >
        <p>An administrator other than you decides. Until then nothing changes.</p>
      </ReasonDialog>
    </div>
  )
}

export const OwnCampaignItems = (): JSX.Element | null => {
  const items = useResource(
    "own campaign items",
    (signal) => ask("listOwnCampaignItems", { query: { limit: String(shown) } }, { signal }),
  )
  const found = items.value.value?.items
  if (found === undefined) return <Failure of={items.failure} retry={items.reload} />
  if (found.length === 0) return null
  return (
    <section aria-labelledby="own-items">
      <h2 id="own-items">Is this Access still needed?</h2>
      <Table
        caption="Access that campaigns ask you about"
        rows={found}
        keyOf={({ item_id }) => item_id}
        empty=""
        columns={[
          { head: "Person", cell: ({ display_name, person_id }) => display_name ?? person_id },
          {
            head: "Project",
            cell: ({ institution_name, project_name }) => (
              <>
                {project_name}
                <div class="note">{institution_name}</div>
              </>
            ),
          },
          {
            head: "Role",
            cell: ({ granted_at, role }) => (
              <>
                {role}, <When at={granted_at} />
              </>
            ),
          },
          {
            head: "Campaign",
            cell: ({ campaign_name, deadline }) => (
              <>
                {campaign_name}
                <div class="note">
                  until <When at={deadline} />
                </div>
              </>
            ),
          },
          { head: "Your answer", cell: (item) => <Answers of={item} done={items.reload} /> },
        ]}
      />
      {found.length < shown ? null : <p class="note">More are shown once you have answered these.</p>}
    </section>
  )
}
