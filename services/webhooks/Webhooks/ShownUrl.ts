/** An endpoint's URL in a notice, without the query: endpoints keep keys there, and a notice leaves by mail and Slack. */
export const shownUrl = (text: string | null): string => {
  const url = text === null ? null : URL.parse(text)
  return url === null ? "its endpoint" : `${url.origin}${url.pathname}`
}
