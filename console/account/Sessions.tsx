/** The sessions of the person at every client, and their ends. */
import type { JSX } from "preact"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { Badge } from "../parts/Badge.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { type Column, Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { ConfirmForm } from "./ConfirmForm.tsx"

type Session = AnswerOf<"listSessions">["items"][number]

/** Rows of one table; the sessions that were seen last come first. */
const most = 50

const browsers = [["Edg/", "Edge"], ["OPR/", "Opera"], ["Firefox/", "Firefox"], ["Chrome/", "Chrome"], [
  "Safari/",
  "Safari",
]] as const
const systems = [["Android", "Android"], ["iPhone", "iPhone"], ["iPad", "iPad"], ["Windows", "Windows"], [
  "Mac OS",
  "macOS",
], ["Linux", "Linux"]] as const

/** `Firefox on Linux`, or the beginning of what the program said of itself. */
const deviceOf = (agent: string): string => {
  const browser = browsers.find(([sign]) => agent.includes(sign))?.[1]
  const system = systems.find(([sign]) => agent.includes(sign))?.[1]
  return browser === undefined ? agent.slice(0, 40) : `${browser}${system === undefined ? "" : ` on ${system}`}`
}

const Where = ({ of: { client_id, current, user_agent } }: { readonly of: Session }): JSX.Element => (
  <>
    <span title={user_agent ?? undefined}>{user_agent === null ? "Unknown program" : deviceOf(user_agent)}</span>
    <span class="note">, {client_id}</span> {current ? <Badge tone="good">this session</Badge> : null}
  </>
)

const levels: Readonly<Record<string, string>> = { aal1: "one factor", aal2: "two factors", aal3: "hardware" }

const columns: ReadonlyArray<Column<Session>> = [
  { head: "Where", cell: (one) => <Where of={one} /> },
  { head: "Signed in", cell: ({ authenticated_at, issued_at }) => <When at={authenticated_at ?? issued_at} /> },
  { head: "With", cell: ({ aal }) => levels[aal] ?? aal },
  { head: "Last seen", cell: ({ last_seen_at }) => <When at={last_seen_at} /> },
  { head: "Network", cell: ({ ip_prefix }) => ip_prefix ?? <span class="note">unknown</span> },
]

const End = ({ done, of }: { readonly of: Session; readonly done: () => unknown }): JSX.Element =>
  of.current
    ? <span class="note">Sign out in the menu</span>
    : (
      <DialogButton name={`end ${of.session_id}`} label="End…" title="End a session">
        {(close) => (
          <ConfirmForm
            action={{ kind: "session.revoke", target_id: of.session_id }}
            close={close}
            done={done}
            name={`end ${of.session_id}`}
            said="The session is ended."
            submit="End the session"
          >
            <p>
              {of.user_agent === null ? "The session" : `The session of ${deviceOf(of.user_agent)}`}{" "}
              is refused at once, here and at the projects that it was used for.
            </p>
          </ConfirmForm>
        )}
      </DialogButton>
    )

export const Sessions = ({ done, of }: {
  readonly of: ReadonlyArray<Session>
  readonly done: () => unknown
}): JSX.Element => {
  const active = of.filter(({ state }) => state === "active")
  const ended = of.filter(({ state }) => state !== "active")
  const others = active.filter(({ current }) => !current).length
  return (
    <section aria-labelledby="sessions">
      <div class="head">
        <h2 id="sessions">Sessions</h2>
        {others === 0 ? null : (
          <DialogButton name="end others" label="End all others…" title="End all other sessions">
            {(close) => (
              <ConfirmForm
                action={{ kind: "sessions.revoke_others" }}
                close={close}
                done={done}
                name="end others"
                said="All other sessions are ended."
                submit="End all others"
              >
                <p>
                  {others === 1 ? "The other session is" : `All ${others} other sessions are`}{" "}
                  refused at once, and so is every older sign-in. This one goes on.
                </p>
              </ConfirmForm>
            )}
          </DialogButton>
        )}
      </div>
      <Table
        caption="Active sessions, last seen first"
        rows={active.slice(0, most)}
        keyOf={({ session_id }) => session_id}
        empty="There is no active session."
        columns={[...columns, { head: "Actions", cell: (one) => <End of={one} done={done} /> }]}
      />
      {active.length > most ? <p class="note">The {most} that were seen last, of {active.length}.</p> : null}
      {ended.length === 0 ? null : (
        <details>
          <summary>Ended in the last 90 days: {ended.length}</summary>
          <Table
            caption="Ended sessions, last seen first"
            rows={ended.slice(0, most)}
            keyOf={({ session_id }) => session_id}
            empty="There is none."
            columns={[...columns, {
              head: "End",
              cell: ({ expires_at, revoked_at, state }) => (
                <>
                  {state === "revoked" ? "ended" : "expired"} <When at={revoked_at ?? expires_at} />
                </>
              ),
            }]}
          />
        </details>
      )}
    </section>
  )
}
