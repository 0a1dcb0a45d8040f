/** Asks the consumers whether they can take more; rejects with what they said when not. */
export function healthAt(
  url: string,
): (options: { readonly signal: AbortSignal }) => Promise<void> {
  const { host } = new URL(url)
  return async ({ signal }) => {
    const response = await fetch(url, { signal, redirect: 'error' })
    // Nobody reads it; the connection is free sooner.
    await response.body?.cancel()
    if (!response.ok) throw new Error(`${host} answered ${response.status}`)
  }
}
