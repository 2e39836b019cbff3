/** The console's pages without scripts: what a sign-in says that did not succeed. */
import type { HttpServerResponse } from "effect/http"
import { html } from "../../../services/platform/mail/Html.ts"
import { framed } from "../pages/PageLayout.ts"
import { refusing } from "../edge/RequestOutcome.ts"

export const consoleStylePath = "/console/page.css"

const page = framed(consoleStylePath)

/** The texts of a failed sign-in, by its code; `status` of the page. */
const words: Readonly<Record<string, readonly [status: number, title: string, text: string]>> = {
  access_denied: [403, "You were not signed in", "The sign-in was refused, or given up."],
  not_begun: [
    400,
    "Sign in again",
    "The sign-in took too long, was completed already, or began in another browser.",
  ],
  unknown: [
    403,
    "You are not known here",
    "The sign-in succeeded, but no active person or account of this installation belongs to it. " +
    "Ask your administrator, or sign in as another person.",
  ],
  another_holder: [
    403,
    "You are signed in as before",
    "This sign-in was to be one more of the person or account that is signed in here, and another one came back. Nothing was " +
    "sent, and the console is still the first one's: sign in again as the same, or sign out there before you change.",
  ],
  unknown_issuer: [404, "There is no such sign-in", "This installation has no sign-in of that name."],
  link_rejected: [
    422,
    "This identity cannot be linked",
    "The sign-in succeeded, but it is not another identity that may become yours: you signed in as yourself, or the other " +
    "person has a part in an institution or a project, or has decided something. Sign in to the console as that person " +
    "to use its rights.",
  ],
  console_read_only: [403, "Nothing was changed", "This installation's console may only read: ask its operator."],
  auditor_reads_only: [403, "Nothing was changed", "You are an auditor here, who reads and changes nothing."],
  csrf_rejected: [403, "Nothing was changed", "This did not come from our page."],
  dependency_unavailable: [503, "Please try again", "The sign-in does not answer at the moment."],
}

const otherwise = [
  400,
  "You were not signed in",
  "The sign-in was answered in a way that cannot be trusted: begin again.",
] as const

/** The page of a failed sign-in, audited under its code. */
export const signInFailed = (code: string): ReturnType<typeof refusing<HttpServerResponse.HttpServerResponse>> => {
  const [status, title, text] = words[code] ?? otherwise
  const body = html`<p>${text}</p>
<p><a class="button" href="/console/">${code === "another_holder" ? "To the console" : "To the sign-in"}</a></p>`
  return refusing(
    code in words && code !== "unknown" ? code : "sign_in_failed",
    page({ status, title, body }),
  )
}
