# Java programs from Maven Central, for the files in dev/services.d. The file that uses it has read lib/process.sh.
# shellcheck shell=bash

# install_java PROGRAM
install_java() {
  has_java || install_packages openjdk-17-jre-headless
  has_java || fail "$1 needs Java 17 or newer, but the first \`java\` on PATH is older: install Java 17"
}

has_java() {
  [[ $(java -version 2>&1) =~ version\ \"([0-9]+) ]] && ((BASH_REMATCH[1] >= 17))
}

# install_jars FOLDER SHA256 GROUP:ARTIFACT:VERSION…: downloads the artifacts with everything that they need. The
# checksum is that of the list of all jars with their checksums, as `sha256sum *.jar` prints it.
install_jars() {
  local folder=$1
  [[ ! -d $folder ]] || return 0
  command -v mvn >/dev/null || install_packages maven
  say "downloading $(basename "$folder")" >&2
  mkdir -p "$(dirname "$folder")"
  # Another service or clone may be installing at the same time.
  (flock 9 && { [[ -d $folder ]] || fetch_jars "$@"; }) \
    9>"$folder.lock" >"${data:?}/install.log" 2>&1 || fail "could not install: see $data/install.log"
}

# Downloads to a temporary folder and moves it, so that an incomplete download is never used. Joined by &&, because
# `set -e` is off in the condition above.
fetch_jars() {
  local folder=$1 new=$1.new sha256=$2
  shift 2
  rm -rf "$new" &&
    mkdir "$new" &&
    write_pom "$@" >"$new/pom.xml" &&
    # A separate repository: it neither adds files to the user's repository nor uses old ones from it.
    mvn --batch-mode --no-transfer-progress --file "$new/pom.xml" \
      -Dmaven.repo.local="$new/repository" -DincludeScope=runtime -DoutputDirectory="$new" \
      org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies &&
    rm -r "$new/repository" &&
    (cd "$new" && LC_ALL=C && sha256sum -- *.jar | tee jars.sha256) &&
    sha256sum --check <<<"$sha256  $new/jars.sha256" &&
    mv -T "$new" "$folder"
}

write_pom() {
  local group artifact version one
  echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
  echo '<groupId>redrive.dev</groupId><artifactId>jars</artifactId><version>1</version>'
  echo '<packaging>pom</packaging><dependencies>'
  for one in "$@"; do
    IFS=: read -r group artifact version <<<"$one"
    echo "<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency>"
  done
  echo '</dependencies></project>'
}
