#!/bin/sh
# Runs in a login pod that is to go: nobody new is let in, and the pod stays until the last ssh session, srun and salloc
# have ended. srun and salloc also count without a session, in a tmux that its user has left. Kubernetes ends the
# wait after terminationGracePeriodSeconds.
notice='This login pod is being replaced. Please log out when you can; a new login takes you to another one.'
busy() {
  grep --quiet --no-messages --null-data --extended-regexp '^sshd(-session)?: [^ ]+@' /proc/[0-9]*/cmdline ||
    grep --quiet --no-messages --line-regexp --extended-regexp '(srun|salloc)(-wlm)?' /proc/[0-9]*/comm
}
printf '%s\n' "$notice" > /etc/nologin
for terminal in /dev/pts/[0-9]*; do
  [ -c "$terminal" ] && timeout 1 printf '\r\n%s\r\n' "$notice" > "$terminal"
done
while busy; do sleep 2; done
