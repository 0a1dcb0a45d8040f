import { type RefObject, useLayoutEffect } from 'react'
import { createStore } from '../store.ts'

/** Number of open dialogs. Pages do not update below a dialog. */
export const openModals = createStore(0)

/**
 * Opens a native dialog while the component is mounted. The focus starts at the element with `data-first`, or at the
 * first control. A layout effect, because the browser returns the focus only if the dialog is still in the page.
 */
export function useModal(element: RefObject<HTMLDialogElement | null>): void {
  useLayoutEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    openModals.set(openModals.get() + 1)
    dialog?.querySelector<HTMLElement>('[data-first]')?.focus()
    return () => {
      openModals.set(openModals.get() - 1)
      dialog?.close()
    }
  }, [element])
}
