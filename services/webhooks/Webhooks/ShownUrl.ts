/** An endpoint's URL for a notice, without the query, which may contain keys: notices are sent by mail and Slack. */
export const shownUrl = (text: string | null): string => {
  const url = text === null ? null : URL.parse(text)
  return url === null ? "its endpoint" : `${url.origin}${url.pathname}`
}
