import { type RefObject, useLayoutEffect } from 'react'

/**
 * Opens a native dialog while the component is mounted. The focus starts at the element with `data-first`, or at the
 * first control. A layout effect, because the browser returns the focus only if the dialog is still in the page.
 */
export function useModal(element: RefObject<HTMLDialogElement | null>): void {
  useLayoutEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    dialog?.querySelector<HTMLElement>('[data-first]')?.focus()
    return () => dialog?.close()
  }, [element])
}
