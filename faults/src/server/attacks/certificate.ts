import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface Certificate {
  readonly key: string
  readonly cert: string
  /** Path of the certificate. */
  readonly path: string
}

/**
 * Creates a self-signed certificate for names and addresses, such as `DNS:hook.test` or
 * `IP:127.0.0.1`.
 */
export async function certificate(folder: string, names: readonly string[]): Promise<Certificate> {
  const [key, path] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const name = ['-subj', '/CN=redrive.test', '-addext', `subjectAltName=${names.join()}`]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
  const args = ['req', '-x509', ...curve, '-nodes', '-days', '1', ...name, '-keyout', key]
  await promisify(execFile)('openssl', [...args, '-out', path])
  return { key: await readFile(key, 'utf8'), cert: await readFile(path, 'utf8'), path }
}
