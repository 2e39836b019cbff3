/** An operator's home: the findings of the doctor, the worst first, each with what to do. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { Badge, type Tone } from "../parts/Badge.tsx"
import { CopyCommand } from "../parts/CopyCommand.tsx"
import { Failure } from "../parts/Failure.tsx"
import { HourBars } from "../parts/HourBars.tsx"
import { LiveState } from "../parts/LiveState.tsx"
import { OpenButton } from "../parts/OpenButton.tsx"
import { Page } from "../parts/Page.tsx"
import { Remedy, sentence } from "../parts/Remedy.tsx"
import { When } from "../parts/When.tsx"
import { useOperatorEvents } from "../OperatorEvents.ts"
import { useResource } from "../Resource.ts"

type Report = AnswerOf<"doctor">
type Finding = Report["items"][number]

const levels: Readonly<Record<Finding["level"], readonly [tone: Tone, words: string]>> = {
  fail: ["bad", "failed"],
  warn: ["warn", "warning"],
  ok: ["good", "fine"],
}

const headlines: Readonly<Record<Report["level"], string>> = {
  fail: "Something has failed. Begin with the first finding.",
  warn: "The program works. Some findings ask for your attention.",
  ok: "Everything that was checked is fine.",
}

/** The page of the console that shows what a finding is about. */
const pages: Readonly<Record<string, readonly [href: string, label: string]>> = {
  audit: ["/console/operations/audit", "Look at the audit"],
  broker: ["/console/operations/bus", "Look at the bus"],
  "held people": ["/console/operations/held-people", "Look at the held people"],
  intake: ["/console/operations/rejects", "Decide on the messages"],
  installation: ["/console/operations/installation", "Look at the installation"],
  mail: ["/console/operations/mails", "Try the mails again"],
  outbox: ["/console/operations/queues", "Look at the queues"],
  slack: ["/console/operations/queues", "Look at the queues"],
  lifecycle: ["/console/operations/consumers", "Look at the consumers"],
  provider: ["/console/operations/jobs", "Decide on the jobs"],
  "signing keys": ["/console/operations/signing-keys", "Announce a signing key"],
  streams: ["/console/operations/bus", "Look at the streams"],
  workers: ["/console/operations/jobs", "Look at the workers"],
}

interface Listed {
  readonly of: Finding
  readonly first: boolean
  /** Checks again, once the step is done. */
  readonly done: () => unknown
}

/** The one step that helps; `first`: whether it is the first finding of its subject, which has the button of all. */
const Step = ({ done, first, of: { subject } }: Listed): JSX.Element | null => {
  const page = pages[subject]
  if (page === undefined) return null
  return (
    <div class="actions">
      {subject === "installation" && first ? <OpenButton done={done} /> : null}
      <a class="button" href={page[0]}>{page[1]}</a>
    </div>
  )
}

const Card = (listed: Listed): JSX.Element => {
  const { hours, hours_capped, level, remedy, says, since, subject } = listed.of
  const [tone, words] = levels[level]
  return (
    <li class="card">
      <h2>{sentence(subject)}</h2>
      <p>
        <Badge tone={tone}>{words}</Badge>
        {since === null ? null : (
          <span class="note">
            {" "}
            since <When at={since} />
          </span>
        )}
      </p>
      <p>{sentence(says)}</p>
      {hours === null ? null : (
        <p>
          <HourBars of={hours} capped={hours_capped} />
        </p>
      )}
      {remedy === null ? null : <Remedy of={remedy} />}
      <Step {...listed} />
    </li>
  )
}

const Findings = (): JSX.Element => {
  const report = useResource("doctor", (signal) => ask("doctor", {}, { signal }))
  const cut = useOperatorEvents({ findings: report.put }, report.reload)
  const found = report.value.value
  const fine = found?.items.filter(({ level }) => level === "ok") ?? []
  return (
    <Page
      title="Findings"
      actions={<button type="button" onClick={() => void report.reload()}>Check again</button>}
    >
      <LiveState cut={cut} />
      <Failure of={report.failure} retry={report.reload} />
      {found === undefined ? <p class="note">The checks are running…</p> : (
        <>
          <p class={`banner ${levels[found.level][0]}`}>{headlines[found.level]}</p>
          <ul class="cards wide">
            {found.items.filter(({ level }) => level !== "ok").map((one) => (
              <Card
                key={`${one.subject} ${one.says}`}
                done={report.reload}
                first={found.items.find(({ subject }) => subject === one.subject) === one}
                of={one}
              />
            ))}
          </ul>
          {fine.length === 0 ? null : (
            <details>
              <summary>{fine.length} checks are fine</summary>
              <dl>
                {fine.map(({ says, subject }) => (
                  <div key={`${subject} ${says}`}>
                    <dt>{sentence(subject)}</dt>
                    <dd>{sentence(says)}</dd>
                  </div>
                ))}
              </dl>
            </details>
          )}
          <p class="note">
            Checked <When at={found.as_of} exact />
          </p>
          <CopyCommand command="doctor" />
        </>
      )}
    </Page>
  )
}
export default Findings
