/** The projects of an institution, and the form that registers a website as a new one. */
import type { JSX } from "preact"
import { useMemo } from "preact/hooks"
import { type Action, useAction } from "../../Action.ts"
import { ask } from "../../contract/Ask.ts"
import type { RequestOf } from "../../contract/EndpointTypes.ts"
import { type Draft, useDraft } from "../../Drafts.ts"
import { DialogButton } from "../../parts/Dialog.tsx"
import { Failure } from "../../parts/Failure.tsx"
import { CheckField, SelectField, TextField } from "../../parts/Form.tsx"
import { MemberField } from "../../parts/MemberField.tsx"
import { emptyPage, lastOf, NextPage, pageSize } from "../../parts/NextPage.tsx"
import { heldReason, ProjectState } from "../../parts/ProjectState.tsx"
import { ReasonForm } from "../../parts/ReasonForm.tsx"
import { Table } from "../../parts/Table.tsx"
import { filterOf } from "../../parts/TextFilter.tsx"
import { When } from "../../parts/When.tsx"
import { useResource } from "../../Resource.ts"
import { loadSession, session } from "../../Visitor.ts"
import type { Shown } from "./Members.tsx"

type Registration = RequestOf<"registerWebsite">["payload"]

interface Typed {
  readonly name: string
  readonly website: string
  readonly owner_person_id: string
  readonly environment: Registration["environment"]
  readonly redirects: string
  readonly kind: Registration["connector_kind"]
  readonly product: string
  readonly preview: string
  readonly afterLogout: string
  readonly backchannel: string
  readonly scopes: Registration["requested_scopes"]
}

const scopes = ["openid", "profile", "email"] as const

const lines = (text: string): ReadonlyArray<string> =>
  text.split("\n").map((line) => line.trim()).filter((line) => line !== "")

const Scopes = ({ draft }: { readonly draft: Draft<Typed> }): JSX.Element => {
  const chosen = draft.value.value.scopes
  return (
    <fieldset>
      <legend>Scopes</legend>
      {scopes.map((scope) => (
        <CheckField
          key={scope}
          label={<code>{scope}</code>}
          checked={chosen.includes(scope)}
          onChange={(checked) =>
            draft.set({ scopes: checked ? [...chosen, scope] : chosen.filter((one) => one !== scope) })}
        />
      ))}
    </fieldset>
  )
}

const kinds = [["standard_oidc", "It signs people in by OpenID Connect"], [
  "service_connector",
  "A service connector does it for it",
]] as const

/** How it is connected, and where its sign-outs lead. */
const More = ({ action, draft }: { readonly action: Action; readonly draft: Draft<Typed> }): JSX.Element => {
  const { afterLogout, backchannel, kind, preview, product } = draft.value.value
  // A draft that waited is shown whole; afterwards the visitor alone opens and closes it.
  const begins = useMemo(() => kind === "service_connector" || afterLogout !== "" || backchannel !== "", [])
  const text = (label: string, name: string, value: string, set: (value: string) => void, hint?: string) => (
    <TextField
      action={action}
      label={label}
      name={name}
      required={false}
      value={value}
      onInput={set}
      {...(hint === undefined ? {} : { hint })}
    />
  )
  return (
    <details open={begins}>
      <summary>Connector and sign-out</summary>
      <SelectField
        label="Kind"
        value={kind ?? "standard_oidc"}
        options={kinds}
        onChange={(kind) => draft.set({ kind: kind as NonNullable<Typed["kind"]> })}
      />
      {kind !== "service_connector" ? null : (
        <>
          {text("Product of the connector", "connector_product", product, (product) => draft.set({ product }))}
          {text(
            "Digest of the preview",
            "preview_digest",
            preview,
            (preview) => draft.set({ preview }),
            "A launch needs both. The launch is bound to this preview.",
          )}
        </>
      )}
      <TextField
        action={action}
        label="Redirect URIs after a sign-out"
        lines={2}
        name="post_logout_redirect_uris"
        required={false}
        hint="One a line, at most 16."
        value={afterLogout}
        onInput={(afterLogout) => draft.set({ afterLogout })}
      />
      {text(
        "Back-channel logout URI",
        "backchannel_logout_uri",
        backchannel,
        (backchannel) => draft.set({ backchannel }),
        "The provider tells it of each sign-out.",
      )}
    </details>
  )
}

const orNull = (text: string): string | null => text.trim() === "" ? null : text.trim()

const Fields = ({ action, draft, institution }: {
  readonly action: Action
  readonly draft: Draft<Typed>
  readonly institution: string
}): JSX.Element => {
  const { environment, name, owner_person_id, redirects, website } = draft.value.value
  const me = session.value?.person?.person_id ?? ""
  return (
    <>
      <TextField
        action={action}
        autofocus
        label="Name"
        name="name"
        value={name}
        onInput={(name) => draft.set({ name })}
      />
      <TextField
        action={action}
        label="Address of the website"
        name="website"
        type="url"
        value={website}
        onInput={(website) => draft.set({ website })}
      />
      <MemberField
        first={[[me, "You"]]}
        institution={institution}
        label="Owner"
        value={owner_person_id}
        without={new Set([me])}
        onChange={(owner_person_id) => draft.set({ owner_person_id })}
      />
      <SelectField
        label="Environment"
        value={environment}
        options={[["staging", "Staging"], ["production", "Production"]]}
        onChange={(environment) => draft.set({ environment: environment as Typed["environment"] })}
      />
      <TextField
        action={action}
        label="Redirect URIs"
        lines={3}
        name="redirect_uris"
        required={false}
        hint="One a line, at most 16, each https; staging also takes http on localhost."
        value={redirects}
        onInput={(redirects) => draft.set({ redirects })}
      />
      <Scopes draft={draft} />
      <More action={action} draft={draft} />
    </>
  )
}

const Register = ({ close, done, institution }: {
  readonly institution: string
  readonly close: () => void
  readonly done: () => unknown
}): JSX.Element => {
  const action = useAction()
  const draft = useDraft<Typed>("website", {
    name: "",
    website: "https://",
    owner_person_id: session.value?.person?.person_id ?? "",
    environment: "staging",
    redirects: "",
    kind: "standard_oidc",
    product: "",
    preview: "",
    afterLogout: "",
    backchannel: "",
    scopes: ["openid"],
  })
  const typed = draft.value.value
  const { environment, kind, name, owner_person_id, redirects, scopes, website } = typed
  const connects = kind === "service_connector"
  return (
    <ReasonForm
      action={action}
      name="register"
      close={close}
      done={done}
      ready={name.trim().length >= 2 && website.length >= 8 && scopes.length > 0}
      submit="Register the website"
      said="The website is registered. Its client is made once the registration was reviewed."
      write={(reason, key) =>
        ask("registerWebsite", {
          params: { institution_id: institution },
          payload: {
            name: name.trim(),
            website: website.trim(),
            connector_kind: kind,
            connector_product: connects ? orNull(typed.product) : null,
            preview_digest: connects ? orNull(typed.preview) : null,
            owner_person_id,
            environment,
            redirect_uris: lines(redirects),
            post_logout_redirect_uris: lines(typed.afterLogout),
            backchannel_logout_uri: orNull(typed.backchannel),
            requested_scopes: scopes,
            reason,
          },
        }, { key })}
    >
      <Fields action={action} draft={draft} institution={institution} />
    </ReasonForm>
  )
}

export const Websites = ({ decides, institution }: Shown): JSX.Element => {
  const after_id = filterOf("projects")
  const projects = useResource(
    `projects ${institution} ${after_id}`,
    (signal) =>
      ask("listProjects", {
        params: { institution_id: institution },
        query: { after_id, limit: String(pageSize) },
      }, { signal }),
  )
  const found = projects.value.value?.items
  return (
    <section aria-labelledby="websites">
      <div class="head">
        <h2 id="websites">Websites</h2>
        {!decides ? null : (
          <DialogButton name="register" label="Register a website…" title="Register a website">
            {(close) => (
              // The session lists the projects that the visitor owns.
              <Register
                close={close}
                done={() => Promise.all([projects.reload(), loadSession()])}
                institution={institution}
              />
            )}
          </DialogButton>
        )}
      </div>
      <Failure of={projects.failure} retry={projects.reload} />
      {found === undefined ? null : (
        <>
          <Table
            caption="Websites, which are projects"
            rows={found}
            keyOf={({ project_id }) => project_id}
            empty={emptyPage(
              "projects",
              decides
                ? "No website is registered yet. Register one by the button above."
                : "No website is registered yet.",
            )}
            columns={[
              {
                head: "Project",
                cell: ({ name, project_id }) => <a href={`/console/projects/${project_id}`}>{name}</a>,
              },
              { head: "State", cell: ({ state }) => <ProjectState of={state} /> },
              { head: "Environment", cell: ({ environment }) => environment },
              { head: "Address", cell: ({ website }) => website },
              {
                head: "Held by",
                cell: ({ held_reason }) =>
                  held_reason === null ? <span class="note">nothing</span> : heldReason(held_reason),
              },
              { head: "Changed", cell: ({ updated_at }) => <When at={updated_at} /> },
            ]}
          />
          <NextPage last={lastOf(found, ({ project_id }) => project_id)} name="projects" words="websites" />
        </>
      )}
    </section>
  )
}
