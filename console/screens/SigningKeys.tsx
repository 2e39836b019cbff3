/** The keys that sign lifecycle messages: how they follow each other, who a transition waits for, and the next step. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import { Badge, type Tone } from "../parts/Badge.tsx"
import { CopyCommand } from "../parts/CopyCommand.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { Failure } from "../parts/Failure.tsx"
import { CheckField, TextField } from "../parts/Form.tsx"
import { Page } from "../parts/Page.tsx"
import { ReasonForm } from "../parts/ReasonForm.tsx"
import { Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { useRefresh } from "../Refresh.ts"
import { useResource } from "../Resource.ts"

type Ring = AnswerOf<"listSigningKeys">
type Key = Ring["items"][number]
type Transition = NonNullable<Ring["transition"]>

interface Opened {
  readonly close: () => void
  readonly done: () => unknown
}

const steps = ["announced", "published", "active", "retiring", "retired"] as const

/** The way of every key, and where this one is on it. */
const Way = ({ state }: Pick<Key, "state">): JSX.Element =>
  state === "compromised" ? <Badge tone="bad">compromised</Badge> : (
    <ol class="way">
      {steps.map((step) => <li key={step} {...(step === state ? { "aria-current": "step" } : {})}>{step}</li>)}
    </ol>
  )

const Announce = ({ close, done }: Opened): JSX.Element => {
  const draft = useDraft("announce from", { days: "1" })
  const { days } = draft.value.value
  const from = () => new Date(Date.now() + Number(days) * 86_400_000).toISOString()
  return (
    <ReasonForm
      name="announce"
      close={close}
      done={done}
      submit="Announce"
      said="The next key is announced. Every project is told."
      ready={Number.isFinite(Number(days)) && Number(days) >= 0 && Number(days) <= 365 && days.trim() !== ""}
      write={(reason, key) => ask("announceSigningKey", { payload: { reason, not_before: from() } }, { key })}
    >
      <p>Every project is told of the next key, and switches to it once its consumers have acknowledged that.</p>
      <TextField
        label="No project switches within (days)"
        name="not_before"
        type="number"
        value={days}
        onInput={(days) => draft.set({ days })}
      />
    </ReasonForm>
  )
}

const Publish = ({ close, done }: Opened): JSX.Element => (
  <ReasonForm
    name="publish"
    close={close}
    done={done}
    submit="Publish"
    said="The key is in the key set."
    write={(reason, key) => ask("publishSigningKey", { payload: { reason } }, { key })}
  >
    <p>
      The announced key enters the key set now, also where projects have not been told of it yet. It does so by itself
      once all have.
    </p>
  </ReasonForm>
)

const Retire = ({ close, done, kid }: Opened & Pick<Key, "kid">): JSX.Element => (
  <ReasonForm
    name={`retire ${kid}`}
    close={close}
    done={done}
    submit="Retire"
    kind="stop"
    said="The key is retired."
    write={(reason, key) => ask("retireSigningKey", { params: { kid }, payload: { reason } }, { key })}
  >
    <p>
      The private key of <code>{kid}</code>{" "}
      goes. A key that has verified for seven days is retired by itself; earlier it cannot be.
    </p>
  </ReasonForm>
)

const Activate = ({ close, done }: Opened): JSX.Element => {
  const draft = useDraft("activate how", { force: false })
  const { force } = draft.value.value
  return (
    <ReasonForm
      name="activate"
      close={close}
      done={done}
      submit="Activate"
      kind={force ? "stop" : "main"}
      said="Projects may switch from now on."
      write={(reason, key) => ask("activateSigningKey", { payload: { reason, force } }, { key })}
    >
      <p>Projects switch from now on, each as soon as its consumers have acknowledged the announcement.</p>
      <CheckField
        label="Wait for no consumer: those that are late are refused until they take a snapshot"
        checked={force}
        onChange={(force) => draft.set({ force })}
      />
    </ReasonForm>
  )
}

const Compromise = ({ close, done, kid }: Opened & Pick<Key, "kid">): JSX.Element => {
  const draft = useDraft(`typed ${kid}`, { typed: "" })
  const { typed } = draft.value.value
  return (
    <ReasonForm
      name={`compromise ${kid}`}
      close={close}
      done={done}
      submit="Take out of use"
      kind="stop"
      said="The key is out of use."
      ready={typed.trim() === kid}
      write={(reason, key) => ask("compromiseSigningKey", { params: { kid }, payload: { reason } }, { key })}
    >
      <p>
        The key leaves the key set at once and signs nothing more. Each consumer of what it signed has to take a
        snapshot. This cannot be taken back.
      </p>
      <p>
        The key is <code>{kid}</code>
      </p>
      <TextField
        label="Type the key's id to confirm"
        name="kid"
        value={typed}
        onInput={(typed) => draft.set({ typed })}
      />
    </ReasonForm>
  )
}

const toneOf = ({ left, untold, waiting }: Transition): readonly [Tone, string] =>
  untold > 0
    ? ["wait", "projects are being told"]
    : waiting.length > 0
    ? ["wait", "waits for consumers"]
    : left > 0
    ? ["wait", "projects switch"]
    : ["good", "no project has to switch any more"]

const Under = ({ of }: { readonly of: Transition }): JSX.Element => {
  const [tone, words] = toneOf(of)
  return (
    <section aria-labelledby="transition">
      <h2 id="transition">Transition</h2>
      <p>
        <Badge tone={tone}>{words}</Badge>
      </p>
      <dl>
        <div>
          <dt>To the key</dt>
          <dd>
            <code>{of.successor}</code>
          </dd>
        </div>
        <div>
          <dt>No project switches before</dt>
          <dd>
            <When at={of.not_before} exact />
          </dd>
        </div>
        <div>
          <dt>Waits for consumers until</dt>
          <dd>
            <When at={of.deadline_at} exact />
          </dd>
        </div>
        <div>
          <dt>Projects</dt>
          <dd>{of.switched} switched, {of.left} to go, {of.untold} not told yet</dd>
        </div>
      </dl>
      {of.waiting.length === 0 ? null : (
        <Table
          caption="Projects that wait for a consumer"
          rows={of.waiting}
          keyOf={({ project_id }) => project_id}
          empty=""
          columns={[
            { head: "Project", cell: ({ project_id }) => <code>{project_id}</code> },
            { head: "Waits for", cell: ({ consumers }) => consumers.join(", ") },
          ]}
        />
      )}
    </section>
  )
}

const SigningKeys = (): JSX.Element => {
  const ring = useResource("signing keys", (signal) => ask("listSigningKeys", {}, { signal }))
  useRefresh(ring, 5)
  const found = ring.value.value
  const next = found === undefined
    ? null
    : found.transition === null
    ? (
      <DialogButton key="announce" name="announce" label="Announce the next key…" title="Announce the next key">
        {(close) => <Announce close={close} done={ring.reload} />}
      </DialogButton>
    )
    : (
      <>
        {found.items.some(({ kid, state }) => kid === found.transition?.successor && state === "announced")
          ? (
            <DialogButton key="publish" name="publish" label="Publish now…" title="Put the next key into the key set">
              {(close) => <Publish close={close} done={ring.reload} />}
            </DialogButton>
          )
          : null}
        <DialogButton key="activate" name="activate" label="Activate now…" title="Let projects switch now">
          {(close) => <Activate close={close} done={ring.reload} />}
        </DialogButton>
      </>
    )
  return (
    <Page title="Signing keys" actions={next}>
      <Failure of={ring.failure} retry={ring.reload} />
      {found === undefined ? null : (
        <>
          <Table
            caption="Signing keys in the order in which they follow each other"
            rows={found.items}
            keyOf={({ kid }) => kid}
            empty="There is no key yet: the first message makes them."
            columns={[
              { head: "Key", cell: ({ kid }) => <code>{kid}</code> },
              {
                head: "State",
                cell: ({ since, state }) => (
                  <>
                    <Way state={state} />{" "}
                    <span class="note">
                      since <When at={since} />
                    </span>
                  </>
                ),
              },
              { head: "Projects", number: true, cell: ({ projects }) => projects },
              {
                head: "End it",
                cell: ({ kid, state }) =>
                  state === "retired" || state === "compromised"
                    ? <span class="note">out of use</span>
                    : (
                      <div class="actions">
                        {state === "retiring"
                          ? (
                            <DialogButton name={`retire ${kid}`} label="Retire…" title="End a key that only verifies">
                              {(close) => <Retire close={close} done={ring.reload} kid={kid} />}
                            </DialogButton>
                          )
                          : null}
                        <DialogButton
                          name={`compromise ${kid}`}
                          label="Take out of use…"
                          title="Take a stolen key out of use"
                        >
                          {(close) => <Compromise close={close} done={ring.reload} kid={kid} />}
                        </DialogButton>
                      </div>
                    ),
              },
            ]}
          />
          {found.transition === null ? null : <Under of={found.transition} />}
        </>
      )}
      <CopyCommand command="keys list" />
    </Page>
  )
}
export default SigningKeys
