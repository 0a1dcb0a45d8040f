/** Returns a request of the API as a command: `GET /api/v1/groups`. */
export function apiText(request: string, body?: object): string {
  const [method = 'GET', path = ''] = request.split(' ')
  const isChange = method !== 'GET'
  return [
    'curl',
    ...(isChange ? [`-X ${method}`] : []),
    '-H "Authorization: Bearer $REDRIVE_TOKEN"',
    ...(isChange ? ['-H "Idempotency-Key: $(uuidgen)"'] : []),
    ...(body === undefined
      ? []
      : ['-H "Content-Type: application/json"', `-d ${quoted(JSON.stringify(body))}`]),
    `"$REDRIVE_URL${path}"`,
  ].join(' ')
}

/** Returns a text in single quotes for a shell. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
