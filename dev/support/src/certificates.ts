import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Creates a self-signed certificate for names such as `DNS:hook.test` or `IP:127.0.0.1`. */
export async function certificate(names: string): Promise<{ cert: string; key: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-tls-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const name = ['-subj', '/CN=redrive.test', '-addext', `subjectAltName=${names}`]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
  const args = ['req', '-x509', ...curve, '-nodes', '-days', '1', ...name, '-keyout', key]
  await promisify(execFile)('openssl', [...args, '-out', cert])
  const pair = { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') }
  await rm(folder, { recursive: true })
  return pair
}

/** A private authority. */
export interface Authority {
  /** Its certificate, PEM. */
  readonly ca: string
  /** Creates a certificate that it has signed. */
  issue(name: string, names: string): Promise<{ cert: string; key: string }>
}

/** Creates a private authority in a folder. */
export async function authority(folder: string, name: string): Promise<Authority> {
  const run = promisify(execFile)
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
  const create = async (file: string, subject: string, ...more: readonly string[]) => {
    const [key, cert] = [join(folder, `${file}.key`), join(folder, `${file}.crt`)]
    const args = ['req', '-x509', ...curve, '-nodes', '-days', '1', '-subj', `/CN=${subject}`]
    await run('openssl', [...args, ...more, '-keyout', key, '-out', cert])
    return { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') }
  }
  const own = await create(name, name)
  const signed = ['-CA', join(folder, `${name}.crt`), '-CAkey', join(folder, `${name}.key`)]
  let issued = 0
  return {
    ca: own.cert,
    issue: (subject, names) =>
      create(
        `${name}-${++issued}`,
        subject,
        ...signed,
        ...['-addext', `subjectAltName=${names}`, '-addext', 'basicConstraints=CA:FALSE'],
      ),
  }
}
