/** The rules of custom headers and basic authentication that depend on more than one field of a webhook. Pure. */
import type { BasicAuth, CustomHeader } from "../../../schemas/mail/WebhookHeaders.ts"

export interface HeaderState {
  readonly url: string
  readonly headerNames: ReadonlyArray<string>
  readonly basicAuth: boolean
}

export interface HeaderChange {
  readonly url?: string | undefined
  /** All of them; an empty list removes them. */
  readonly headers?: ReadonlyArray<CustomHeader> | undefined
  /** Two empty texts remove it. */
  readonly basicAuth?: BasicAuth | undefined
}

export interface HeaderFault {
  readonly field: "headers" | "basic_auth"
  readonly message: string
}

/** Whether this takes basic authentication away. */
export const removes = ({ password, username }: BasicAuth): boolean => username === "" && password === ""

/** The headers of a webhook after a change, as answers show them. */
export const headersAfter = (state: HeaderState, { basicAuth, headers }: HeaderChange) => ({
  headerNames: headers?.map(({ name }) => name) ?? state.headerNames,
  basicAuth: basicAuth === undefined ? state.basicAuth : !removes(basicAuth),
})

const originOf = (url: string) => URL.parse(url)?.origin

/**
 * Why a change is refused. The values cannot be read, so they stay with the origin (scheme, host, port) that they were
 * written for: otherwise a caller who may change the URL could have them sent to a server of its own.
 */
export const headerFaults = (state: HeaderState, change: HeaderChange): ReadonlyArray<HeaderFault> => {
  const after = headersAfter(state, change)
  const faults: Array<HeaderFault> = []
  if (change.url !== undefined && originOf(change.url) !== originOf(state.url)) {
    if (state.headerNames.length > 0 && change.headers === undefined) {
      faults.push({
        field: "headers",
        message: "A URL of another origin should come with the headers anew, or with an empty list.",
      })
    }
    if (state.basicAuth && change.basicAuth === undefined) {
      faults.push({
        field: "basic_auth",
        message: "A URL of another origin should come with the credentials anew, or with two empty texts.",
      })
    }
  }
  if (after.basicAuth && after.headerNames.some((name) => name.toLowerCase() === "authorization")) {
    faults.push({
      field: change.headers === undefined ? "basic_auth" : "headers",
      message: "A webhook should have basic authentication or a header Authorization, not both.",
    })
  }
  return faults
}
