/** Returns a check that calls the health URL of the consumers. It rejects unless the status is 2xx. */
export function healthAt(
  url: string,
): (options: { readonly signal: AbortSignal }) => Promise<void> {
  const { host } = new URL(url)
  return async ({ signal }) => {
    const response = await fetch(url, { signal, redirect: 'error' })
    // The body is not needed. Cancelling it releases the connection earlier.
    await response.body?.cancel()
    if (!response.ok) throw new Error(`${host} returned status ${response.status}`)
  }
}
